import FoundationEssentials
import PropertyLists
import SystemCalls

/// What a batch's file holds: entries of one sender that were stored together.
struct Batch: Sendable {
  /// One entry; one that was withdrawn has no payload any more.
  struct Entry: Sendable {
    var payload: PropertyListValue?
    var expiry: Expiry?
    /// A newer one of its sender with the same key takes its place.
    var key: String?
    /// Whether its sender wants to find it and its end after a restart.
    var keepsReceipt = false
    /// For how long, if it does.
    var receiptTerm = QueueReceipt.Term.untilForgotten
    /// How it has ended, where there is no payload.
    private(set) var withdrawal = QueueEntryStatus.cancelled

    init(
      payload: PropertyListValue, expiry: Expiry? = nil, key: String? = nil,
      keepsReceipt: Bool = false, receiptTerm: QueueReceipt.Term = .untilForgotten
    ) {
      self.payload = payload
      self.expiry = expiry
      self.key = key
      self.keepsReceipt = keepsReceipt
      self.receiptTerm = receiptTerm
    }

    init(withdrawnAs status: QueueEntryStatus) { withdrawal = status }

    init(_ value: PropertyListValue) {
      payload = value["payload"]
      expiry = Expiry(value)
      key = value["key"]?.stringValue
      keepsReceipt = value["receipt"] == true
      if value["receiptExpires"] == true { receiptTerm = .dayAfterProcessing }
      withdrawal = value["superseded"] == true ? .superseded : .cancelled
    }

    /// What it holds besides the few fields of its own.
    var footprint: PropertyListFootprint {
      var footprint = (payload ?? true).footprint
      footprint.contentBytes += key?.utf8.count ?? 0
      footprint.nodes += 12
      return footprint
    }

    var value: PropertyListValue {
      guard let payload else {
        return withdrawal == .superseded ? ["superseded": true] : ["cancelled": true]
      }
      var value: PropertyListValue = ["payload": payload]
      expiry?.write(into: &value)
      if let key { value["key"] = .string(key) }
      if keepsReceipt { value["receipt"] = true }
      if keepsReceipt, receiptTerm == .dayAfterProcessing { value["receiptExpires"] = true }
      return value
    }
  }

  /// Why a file is no batch.
  struct Unreadable: Error {
    let reason: String
  }

  var entries: [Entry]

  /// Those whose sender wants to find them again.
  var kept: [Int] { entries.indices.filter { entries[$0].keepsReceipt } }

  var isWithdrawn: Bool { entries.allSatisfy { $0.payload == nil } }

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
    entries = list.map { Entry($0) }
  }

  /// - Parameter mustCheck: false for what is known to be far below the limits.
  /// Whether a part of what was stored never reached the disk: the file ends with a block before its
  /// end, or has zeros where a block was to be. For one that cannot be read.
  ///
  /// - Parameter size: how large the file was when it was stored.
  static func isIncomplete(_ bytes: [UInt8], of size: Int) -> Bool {
    // The least that a file system keeps content in.
    let block = 512
    return bytes.count < size && bytes.count % block == 0
      || stride(from: 0, to: bytes.count, by: block).contains { start in
        bytes[start..<min(start + block, bytes.count)].allSatisfy { $0 == 0 }
      }
  }

  func bytes(mustCheck: Bool = true) throws(PropertyListError) -> [UInt8] {
    let list = PropertyListValue.array(entries.map(\.value))
    let bytes = try PropertyListValue.dictionary(["entries": list]).binaryBytes()
    // What no consumer would accept is not stored.
    if mustCheck { try PropertyListGuard.check(bytes) }
    return bytes
  }
}
