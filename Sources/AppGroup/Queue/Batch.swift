import FoundationEssentials
import PropertyLists
import SystemCalls

/// What a batch's file holds: entries of one sender that were stored together.
struct Batch: Sendable {
  /// One entry; one that was cancelled has no payload any more.
  struct Entry: Sendable {
    var payload: PropertyListValue?
    var expiry: Expiry?
    /// Whether its sender wants to find it and its end after a restart.
    var keepsReceipt = false
  }

  /// Why a file is no batch.
  struct Unreadable: Error {
    let reason: String
  }

  var entries: [Entry]

  /// Those whose sender wants to find them again.
  var kept: [Int] { entries.indices.filter { entries[$0].keepsReceipt } }

  var isCancelled: Bool { entries.allSatisfy { $0.payload == nil } }

  init(_ entries: [Entry]) { self.entries = entries }

  /// Reads a file; the name says how many entries it must have.
  init(bytes: [UInt8], count: Int) throws(Unreadable) {
    let value: PropertyListValue
    do throws(PropertyListError) {
      value = try PropertyListValue(bytes: bytes)
    } catch {
      throw Unreadable(reason: error.reason)
    }
    guard let list = value["entries"]?.arrayValue, list.count == count else {
      throw Unreadable(reason: "it has not the \(count) entries that its name promises")
    }
    entries = list.map { entry in
      Entry(
        payload: entry["payload"], expiry: Expiry(entry), keepsReceipt: entry["receipt"] == true)
    }
  }

  func bytes() throws(PropertyListError) -> [UInt8] {
    let list = entries.map { entry -> PropertyListValue in
      guard let payload = entry.payload else { return ["cancelled": true] }
      var value: PropertyListValue = ["payload": payload]
      entry.expiry?.write(into: &value)
      if entry.keepsReceipt { value["receipt"] = true }
      return value
    }
    let bytes = try PropertyListValue.dictionary(["entries": .array(list)]).binaryBytes()
    // What no consumer would accept is not stored.
    try PropertyListGuard.check(bytes)
    return bytes
  }
}
