import SystemCalls

/// The name of a batch: `<order>-<sender>-<count>-<bytes>.plist`, which never changes, so that waiting
/// entries are counted and found without opening anything.
struct BatchName: Hashable, Sendable {
  /// Nanoseconds since 1970 by a clock that never goes back for this sender.
  let order: UInt64
  /// The sender's name, encoded.
  let sender: String
  /// How many entries the batch has.
  let count: Int
  /// How large its file was when it was stored.
  let bytes: Int

  static let suffix = ".plist"
  /// As long as a sender's encoded name may be, for the whole to fit a file name.
  static let maximumSenderBytes = 160
  static let maximumCount = 512
  /// More than any file of ours has, and little enough to be added up.
  static let maximumBytes = 1 << 32

  init(order: UInt64, sender: String, count: Int, bytes: Int) {
    self.order = order
    self.sender = sender
    self.count = count
    self.bytes = bytes
  }

  /// Reads a name; nil for what is no batch.
  init?(_ name: some StringProtocol) {
    let text = name.utf8
    guard text.count < 256, name.hasSuffix(Self.suffix) else { return nil }
    let parts = name.dropLast(Self.suffix.count).split(
      separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 4, parts[0].utf8.count == 16,
      let order = UInt64(parts[0], radix: 16), let bytes = Int(parts[parts.count - 1]),
      let count = Int(parts[parts.count - 2]), (0...Self.maximumBytes).contains(bytes),
      (1...Self.maximumCount).contains(count)
    else { return nil }
    self.init(
      order: order, sender: parts[1..<(parts.count - 2)].joined(separator: "-"), count: count,
      bytes: bytes)
    // Only the one form in which it is written, or two names would mean one batch.
    guard self.text.utf8.elementsEqual(text), !sender.isEmpty else { return nil }
  }

  var text: String {
    let digits = String(order, radix: 16)
    let padding = String(repeating: "0", count: 16 - digits.utf8.count)
    return "\(padding)\(digits)-\(sender)-\(count)-\(bytes)\(Self.suffix)"
  }

  /// The sender's name as it was given.
  var senderName: String {
    guard case .identifier(let name) = EncodedName.decode(sender.utf8) else { return sender }
    return name
  }
}

extension BatchName: Comparable {
  static func < (first: BatchName, second: BatchName) -> Bool {
    first.order != second.order ? first.order < second.order : first.sender < second.sender
  }
}
