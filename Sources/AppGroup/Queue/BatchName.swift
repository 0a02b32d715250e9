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
  init?(_ name: some StringProtocol) { self.init(bytes: Array(name.utf8)) }

  /// Reads a name; nil for what is no batch. Only the one form in which it is written is one, or two
  /// names would mean one batch.
  ///
  /// A million of them are read in a look at all that waits: so no strings but the sender's.
  init?(bytes name: [UInt8]) {
    guard name.count < 256, let end = Self.end(of: name) else { return nil }
    var rest = name[..<end]
    guard let bytes = Self.takeNumber(&rest), (0...Self.maximumBytes).contains(bytes),
      let count = Self.takeNumber(&rest), (1...Self.maximumCount).contains(count),
      let order = Self.takeOrder(&rest), !rest.isEmpty,
      rest.allSatisfy({ (0x21..<0x7F).contains($0) })
    else { return nil }
    self.init(
      order: order, sender: String(decoding: rest, as: UTF8.self), count: count, bytes: bytes)
  }

  private static func end(of name: [UInt8]) -> Int? {
    let end = name.count - suffix.utf8.count
    return end > 0 && name[end...].elementsEqual(suffix.utf8) ? end : nil
  }

  /// The decimal number at the end, and the dash before it.
  private static func takeNumber(_ rest: inout ArraySlice<UInt8>) -> Int? {
    var number = 0
    var unit = 1
    var digits = 0
    while let byte = rest.last, (0x30...0x39).contains(byte), digits < 12 {
      number += Int(byte - 0x30) * unit
      unit *= 10
      digits += 1
      rest.removeLast()
    }
    // No zeros in front.
    guard digits > 0, digits == 1 || number >= unit / 10, rest.popLast() == 0x2D else { return nil }
    return number
  }

  /// The sixteen hex digits at the beginning, and the dash after them.
  private static func takeOrder(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
    guard rest.count > 17 else { return nil }
    var order: UInt64 = 0
    for _ in 0..<16 {
      switch rest.removeFirst() {
      case let byte where (0x30...0x39).contains(byte): order = order << 4 | UInt64(byte - 0x30)
      case let byte where (0x61...0x66).contains(byte): order = order << 4 | UInt64(byte - 0x57)
      default: return nil
      }
    }
    return rest.removeFirst() == 0x2D ? order : nil
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
