import FoundationEssentials
package import WormholePropertyLists
import WormholeSystem

/// The content of a batch's file: entries of one sender that were stored together.
package struct Batch: Sendable {
  /// One entry; a withdrawn one no longer has a payload.
  package struct Entry: Sendable {
    package var payload: PropertyListValue?
    package var expiry: Expiry?
    /// A newer entry of the same sender with the same key supersedes this one.
    package var key: String?
    /// Whether its sender wants to find it and its outcome after a restart.
    package var keepsReceipt = false
    package var receiptTerm = QueueReceipt.Term.untilForgotten
    /// How it has ended, if there is no payload.
    package private(set) var withdrawal = QueueEntryStatus.cancelled

    package init(
      payload: PropertyListValue, expiry: Expiry? = nil, key: String? = nil,
      keepsReceipt: Bool = false, receiptTerm: QueueReceipt.Term = .untilForgotten
    ) {
      self.payload = payload
      self.expiry = expiry
      self.key = key
      self.keepsReceipt = keepsReceipt
      self.receiptTerm = receiptTerm
    }

    package init(withdrawnAs status: QueueEntryStatus) { withdrawal = status }

    package init(_ value: PropertyListValue) {
      payload = value["payload"]
      // Most have nothing else.
      if payload != nil, case .dictionary(let fields) = value, fields.count == 1 { return }
      expiry = Expiry(value)
      key = value["key"]?.stringValue
      keepsReceipt = value["receipt"] == true
      if value["receiptExpires"] == true { receiptTerm = .dayAfterProcessing }
      withdrawal = value["superseded"] == true ? .superseded : .cancelled
    }

    /// The footprint of its content, with its few own fields.
    package var footprint: PropertyListFootprint {
      var footprint = (payload ?? true).footprint
      footprint.contentBytes += key?.utf8.count ?? 0
      footprint.nodes += 12
      return footprint
    }

    package var value: PropertyListValue {
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

  /// The reason why a file is not a batch.
  package struct Unreadable: Error {
    package let reason: String
    /// The kernel's refusal, if the file may not be read.
    package var refusal: Errno?
  }

  package var entries: [Entry]

  /// The indices of the entries that keep a receipt.
  package var kept: [Int] { entries.indices.filter { entries[$0].keepsReceipt } }

  /// The keys of its entries that are not withdrawn, by their indices.
  package var keys: [Int: String] {
    var keys: [Int: String] = [:]
    for (index, entry) in entries.enumerated() where entry.payload != nil {
      keys[index] = entry.key
    }
    return keys
  }

  package var isWithdrawn: Bool { entries.allSatisfy { $0.payload == nil } }

  package init(_ entries: [Entry]) { self.entries = entries }

  /// Reads a file whose name gives the number of its entries.
  package init(bytes: [UInt8], count: Int) throws(Unreadable) {
    let value: PropertyListValue
    do throws(PropertyListError) {
      value = try PropertyListValue(bytes: bytes)
    } catch {
      throw Unreadable(reason: error.reason)
    }
    guard let list = value["entries"]?.arrayValue, list.count == count else {
      throw Unreadable(reason: "it does not contain the \(count) entries its name promises")
    }
    entries = list.map { Entry($0) }
  }

  /// Returns whether a part of the stored content never reached the disk: the file stops early at
  /// the end of a block, or has zeros instead of a block. For an unreadable file.
  ///
  /// - Parameter size: the size of the file when it was stored.
  package static func isIncomplete(_ bytes: [UInt8], of size: Int) -> Bool {
    // The smallest unit in which a file system stores content.
    let block = 512
    return bytes.count < size && bytes.count % block == 0
      || stride(from: 0, to: bytes.count, by: block).contains { start in
        bytes[start..<min(start + block, bytes.count)].allSatisfy { $0 == 0 }
      }
  }

  /// - Throws: `PropertyListError` for entries that no consumer would accept.
  package func bytes() throws(PropertyListError) -> [UInt8] {
    let list = PropertyListValue.array(entries.map(\.value))
    return try PropertyListValue.dictionary(["entries": list]).binaryBytes(limits: .standard)
  }
}

/// `taken/<consumer>/<batch>.deliveries`: how often entries of a batch were delivered, and what became of
/// these deliveries; lines are appended:
///
/// ```
/// <number>                          it is about to be delivered
/// <number> -<count>                 <count> of its deliveries were given back: they are not attempts
/// <number> <pause> <due> <reason>   an attempt failed: it is given back for <pause> milliseconds, to be
///                                   delivered at <due>, in milliseconds since 1970
/// ```
///
/// **Counted before.** The line is written before the entry is handed over, so a delivery that
/// kills its consumer is counted as well. A batch of one costs nothing the first time: taking it
/// counts as its first delivery. So it has one line fewer than deliveries.
///
/// **With the batch.** The log has its batch's name and is moved with it, and means the same
/// everywhere.
package struct DeliveryLog: Sendable {
  private struct Count {
    var deliveries = 0
    /// How many of them were given back without an attempt.
    var givenBack = 0
  }

  /// The first entry's count, kept apart because most batches have no other.
  private var first = Count()
  /// The counts of the others.
  private var others: [Int: Count] = [:]
  package var isWritten: Bool
  private var pauses: [Int: (pause: Int64, due: Int64)] = [:]
  private var reasons: [Int: String] = [:]

  /// - Parameter taken: the entry of a batch of one that was taken before, by this consumer or another.
  package init(_ bytes: [UInt8]? = nil, taken: Int? = nil) {
    isWritten = bytes != nil
    if let taken { noteDelivery(of: taken) }
    guard let bytes else { return }
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 3)
      guard let index = words.first.flatMap({ Int($0) }) else { continue }
      switch words.count {
      case 1: noteDelivery(of: index)
      case 2:
        // The numbers of this package are small; a planted one must not overflow a sum.
        let count = min(max(Int(words[1].dropFirst()) ?? 0, 0), 1 << 30)
        switch words[1].first {
        case Self.repetition: noteDelivery(of: index, count: count)
        case Self.subtraction: noteGivenBack(index, count: count)
        default: continue
        }
      case 3...:
        guard let pause = Int64(words[1]), let due = Int64(words[2]) else { continue }
        pauses[index] = (pause, due)
        reasons[index] = words.count > 3 ? String(words[3]) : nil
      default: continue
      }
    }
  }

  private func count(_ index: Int) -> Count { index == 0 ? first : others[index] ?? Count() }

  private mutating func change(_ index: Int, _ body: (inout Count) -> Void) {
    if index == 0 { body(&first) } else { body(&others[index, default: Count()]) }
  }

  package func deliveries(of index: Int) -> Int { count(index).deliveries }

  /// Returns the number of deliveries that were attempts to process it.
  package func attempts(of index: Int) -> Int {
    let count = count(index)
    return max(count.deliveries - count.givenBack, 0)
  }

  /// Returns why its last failed attempt failed; nil if none did.
  package func reason(_ index: Int) -> String? { reasons[index] }

  /// Returns the time until which it is given back; nil if it is not. If the clock was set back,
  /// the delay is no longer than the pause.
  package func due(_ index: Int) -> ContinuousClock.Instant? {
    guard let (pause, due) = pauses[index] else { return nil }
    let remaining = Int128(due) - realTime().millisecondsSince1970
    return .now + .milliseconds(Int64(clamping: min(max(remaining, 0), Int128(max(pause, 0)))))
  }

  package mutating func noteDelivery(of index: Int, count: Int = 1) {
    change(index) { $0.deliveries += count }
    if !pauses.isEmpty { pauses[index] = nil }
  }

  package mutating func noteGivenBack(_ index: Int, count: Int = 1) {
    change(index) { $0.givenBack += count }
  }

  /// Returns the same record with at most three lines for each entry: "0 x9" stands for nine deliveries.
  /// The entry of the last line stays last.
  package static func reduced(_ text: String) -> String {
    let log = DeliveryLog(Array(text.utf8))
    let last = text.split(separator: "\n").last?.split(separator: " ").first.flatMap { Int($0) }
    let indices = Set(log.others.keys).union(log.reasons.keys).union(log.pauses.keys).union([0])
    return indices.sorted { ($0 == last ? 1 : 0, $0) < ($1 == last ? 1 : 0, $1) }.map { index in
      let count = log.count(index)
      let delivered =
        count.deliveries > 1
        ? "\(index) \(repetition)\(count.deliveries)\n" : count.deliveries > 0 ? line(index) : ""
      let givenBack = count.givenBack > 0 ? givenBackLine(index, count: count.givenBack) : ""
      let pause = log.pauses[index].map {
        "\(index) \($0.pause) \($0.due)\(log.reasons[index].map { " " + $0 } ?? "")\n"
      }
      // The reason outlives its pause, which ends with the next delivery.
      let past = pause == nil ? log.reasons[index].map { "\(index) 0 0 \($0)\n" } : nil
      return (past ?? "") + delivered + givenBack + (pause ?? "")
    }.joined()
  }

  private static let repetition: Character = "x"
  private static let subtraction: Character = "-"

  package static func line(_ index: Int) -> String { "\(index)\n" }

  package static func givenBackLine(_ index: Int, count: Int = 1) -> String {
    "\(index) \(subtraction)\(count)\n"
  }

  package static func line(_ index: Int, pause: Duration, reason: String) -> String {
    let pause = Int64(min(max(pause / .milliseconds(1), 0), 1e15))
    let due = Int64(clamping: realTime().millisecondsSince1970 + Int128(pause))
    return "\(index) \(pause) \(due) \(shortened(reason))\n"
  }

  /// The longest reason that is recorded, in bytes.
  private static let maximumReasonBytes = 1_000

  // The reason has to fit on one line of the record.
  private static func shortened(_ reason: String) -> String {
    String(decoding: reason.utf8.prefix(maximumReasonBytes), as: UTF8.self)
      .split(whereSeparator: \.isNewline).joined(separator: "; ")
  }
}
