import SystemCalls

/// The name of an entry: `<stamp>-<sender>-<bytes>.plist`.
struct MailboxEntryName: Hashable, Sendable {
  /// Nanoseconds since the machine started, and more than in the name before of the same sender.
  let stamp: UInt64
  /// A nonce of the one who posts.
  let sender: String
  let bytes: Int

  private static let suffix = ".plist"
  private static let maximumSenderBytes = 32

  init(stamp: UInt64, sender: String, bytes: Int) {
    self.stamp = stamp
    self.sender = sender
    self.bytes = bytes
  }

  /// Reads a name; nil for what is no entry.
  init?(_ name: FileName) {
    let bytes = name.bytes
    guard bytes.count <= 96, bytes.suffix(Self.suffix.utf8.count).elementsEqual(Self.suffix.utf8)
    else { return nil }
    let parts = bytes.dropLast(Self.suffix.utf8.count).split(
      separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].count == 16, !parts[1].isEmpty,
      parts[1].count <= Self.maximumSenderBytes,
      let stamp = UInt64(String(decoding: parts[0], as: UTF8.self), radix: 16),
      let size = Int(String(decoding: parts[2], as: UTF8.self)),
      (0...Mailbox.maximumBytes).contains(size)
    else { return nil }
    self.init(stamp: stamp, sender: String(decoding: parts[1], as: UTF8.self), bytes: size)
    // Only the one form in which it is written, or two names would mean one entry.
    guard text.utf8.elementsEqual(bytes) else { return nil }
  }

  var text: String {
    let digits = String(stamp, radix: 16)
    let padding = String(repeating: "0", count: 16 - digits.utf8.count)
    return "\(padding)\(digits)-\(sender)-\(bytes)\(Self.suffix)"
  }
}

extension MailboxEntryName: Comparable {
  static func < (first: MailboxEntryName, second: MailboxEntryName) -> Bool {
    first.stamp != second.stamp ? first.stamp < second.stamp : first.sender < second.sender
  }
}
