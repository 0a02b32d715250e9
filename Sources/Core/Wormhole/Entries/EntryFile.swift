import WormholeSystem

/// A file whose name gives its order, its sender, its number of entries and its size:
/// `<order>-<sender>-<count>-<bytes>.plist`, with `@<due>` after the size if it is delayed.
///
/// The name never changes, so waiting entries are counted, ordered and found without opening
/// anything. A file gets its name in one step, when it is complete: see `ContainerRoot.storeEntry`.
/// Queues and mailboxes store their entries this way; the entries of a queue that were sent
/// together share one file.
package struct EntryFile: Hashable, Sendable {
  /// Nanoseconds, by a clock that never goes back for this sender: see `order(after:now:)`.
  package let order: UInt64
  /// The sender's name: printable ASCII without a slash.
  package let sender: String
  /// The number of entries in the file's content.
  package let total: Int
  /// The only entry of the content that the file stands for, by its number, after workers have shared
  /// the batch; nil for all.
  package private(set) var part: Int?
  /// The size of the file when it was stored.
  package let bytes: Int
  /// The time from which it may be delivered, in nanoseconds since 1970; nil for at once.
  package let due: UInt64?

  package static let suffix = ".plist"
  /// The largest length of an encoded sender's name for which the whole fits a file name.
  package static let maximumSenderBytes = 160
  package static let maximumCount = 512
  /// More than any entry's file has, and small enough to be added up.
  package static let maximumBytes = 1 << 32

  package init(
    order: UInt64, sender: String, count: Int, bytes: Int, due: UInt64? = nil
  ) {
    self.order = order
    self.sender = sender
    total = count
    self.bytes = bytes
    self.due = due
  }

  /// The entries that the file stands for.
  package var indices: Range<Int> { part.map { $0..<$0 + 1 } ?? 0..<total }

  /// The number of entries that the file stands for.
  package var count: Int { part == nil ? total : 1 }

  /// The name under which the batch was stored, which identifies its entries.
  package var whole: EntryFile { of(nil) }

  /// Returns the name of a file that stands for one of the entries.
  package func of(_ part: Int?) -> EntryFile {
    var name = self
    name.part = part
    return name
  }

  /// The beginning of its parts' names.
  package var partsStart: String { String(whole.text.dropLast(Self.suffix.count)) + "+" }

  package init?(_ name: some StringProtocol) { self.init(bytes: Array(name.utf8)) }

  /// Parses a name; nil if it is not the name of an entry. Only the one form that is written is
  /// accepted; otherwise two names would mean one file.
  ///
  /// A complete scan reads up to a million names, so the sender's name is the only string created,
  /// and nothing is copied.
  package init?(bytes name: [UInt8]) {
    guard let entry = name.withUnsafeBufferPointer({ Self($0) }) else { return nil }
    self = entry
  }

  private init?(_ name: UnsafeBufferPointer<UInt8>) {
    guard name.count < 256, let end = Self.end(of: name) else { return nil }
    var rest = name[..<end]
    let due = Self.takeDue(&rest)
    let part = due == nil ? Self.takePart(&rest) : nil
    guard let bytes = Self.takeNumber(&rest), (0...Self.maximumBytes).contains(bytes),
      let count = Self.takeNumber(&rest), (1...Self.maximumCount).contains(count),
      let order = Self.takeOrder(&rest), !rest.isEmpty,
      rest.allSatisfy({ (0x21..<0x7F).contains($0) }),
      part.map({ count > 1 && $0 < count }) ?? true
    else { return nil }
    self.init(
      order: order, sender: String(decoding: rest, as: UTF8.self), count: count, bytes: bytes,
      due: due)
    self.part = part
  }

  /// Returns whether an entry that has just arrived may go before older ones: it has a due
  /// time, or workers have shared its batch. Does not parse all of the name.
  package static func mayGoAhead(_ name: [UInt8]) -> Bool {
    name.withUnsafeBufferPointer { name in
      guard let end = end(of: name) else { return false }
      var rest = name[..<end]
      return takeDue(&rest) != nil || takePart(&rest) != nil
    }
  }

  private typealias Part = Slice<UnsafeBufferPointer<UInt8>>

  private static func end(of name: UnsafeBufferPointer<UInt8>) -> Int? {
    let end = name.count - suffix.utf8.count
    return end > 0 && name[end...].elementsEqual(suffix.utf8) ? end : nil
  }

  /// Removes the decimal number at the end, and the dash before it.
  private static func takeNumber(_ rest: inout Part, after mark: UInt8 = 0x2D) -> Int? {
    var number = 0
    var unit = 1
    var digits = 0
    while let byte = rest.last, (0x30...0x39).contains(byte), digits < 12 {
      number += Int(byte - 0x30) * unit
      unit *= 10
      digits += 1
      rest.removeLast()
    }
    // No leading zeros.
    guard digits > 0, digits == 1 || number >= unit / 10, rest.popLast() == mark else { return nil }
    return number
  }

  /// Removes the number of the only entry at the end, and the sign before it, if there is one.
  private static func takePart(_ rest: inout Part) -> Int? {
    var shorter = rest
    guard let part = takeNumber(&shorter, after: UInt8(ascii: "+")) else { return nil }
    rest = shorter
    return part
  }

  /// Removes the due time at the end, if there is one. Without one, a dash is among the last sixteen
  /// bytes, because a size has fewer digits.
  private static func takeDue(_ rest: inout Part) -> UInt64? {
    guard rest.count > 17, rest[rest.endIndex - 17] == UInt8(ascii: "@"),
      let due = number(rest.suffix(16))
    else { return nil }
    rest = rest.dropLast(17)
    return due
  }

  /// Removes the sixteen hex digits at the beginning, and the dash after them.
  private static func takeOrder(_ rest: inout Part) -> UInt64? {
    guard rest.count > 17, let order = number(rest.prefix(16)) else { return nil }
    rest = rest.dropFirst(16)
    return rest.removeFirst() == 0x2D ? order : nil
  }

  /// The number of sixteen lower-case hex digits.
  private static func number(_ digits: Part) -> UInt64? {
    var number: UInt64 = 0
    for digit in digits {
      switch digit {
      case 0x30...0x39: number = number << 4 | UInt64(digit - 0x30)
      case 0x61...0x66: number = number << 4 | UInt64(digit - 0x57)
      default: return nil
      }
    }
    return number
  }

  package var text: String {
    let capacity =
      sender.utf8.count + Self.suffix.utf8.count
      + 2 * (NameWriter.hexDigits + 1) + 3 * (NameWriter.decimalDigits + 1)
    return NameWriter.text(capacity: capacity) { writer in
      // Sixteen digits, so that names sort like their numbers.
      writer.append(hex: order, width: NameWriter.hexDigits)
      writer.append(UInt8(ascii: "-"))
      writer.append(sender)
      for number in [total, bytes] {
        writer.append(UInt8(ascii: "-"))
        writer.append(decimal: UInt64(number))
      }
      if let part {
        writer.append(UInt8(ascii: "+"))
        writer.append(decimal: UInt64(part))
      }
      if let due {
        writer.append(UInt8(ascii: "@"))
        writer.append(hex: due, width: NameWriter.hexDigits)
      }
      writer.append(Self.suffix)
    }
  }

  /// Returns the order of an entry: later than the last one of the same sender, and not before now.
  package static func order(after last: UInt64, now: UInt64) -> UInt64 { max(now, last &+ 1) }

  /// Whether it is delivered before another if both may be: as if it had been sent when it was due.
  package func precedes(_ other: EntryFile) -> Bool {
    let (moment, others) = (due ?? order, other.due ?? other.order)
    return moment != others ? moment < others : self < other
  }

  /// Returns the waiting entries as they are to be delivered, so that none overtakes an older one of
  /// its sender.
  ///
  /// A listing of a directory that changes at the same time is not a snapshot: it may show a file
  /// created during the listing and miss an older one (readdir(3)). So there are two listings, and
  /// an entry counts if the second shows it and it is not newer than the newest of its sender in
  /// the first: anything older existed when the second began, and so is in it.
  ///
  /// - Parameter list: lists the waiting entries, and says whether that is still a snapshot.
  package static func ordered<Failure>(
    _ list: () throws(Failure) -> (entries: [EntryFile], isSnapshot: Bool)
  ) throws(Failure) -> [EntryFile] {
    let (first, isSnapshot) = try list()
    guard !first.isEmpty else { return [] }
    return merged(first, isSnapshot ? first : try list().entries)
  }

  private static func merged(_ first: [EntryFile], _ second: [EntryFile]) -> [EntryFile] {
    var second = second
    if second != first {
      var newest: [String: UInt64] = [:]
      for entry in first { newest[entry.sender] = max(newest[entry.sender] ?? 0, entry.order) }
      second.removeAll { entry in newest[entry.sender].map { entry.order > $0 } ?? true }
    }
    second.sort { $0.precedes($1) }
    return second
  }

  /// The sender's original name.
  package var senderName: String {
    guard case .identifier(let name) = EncodedName.decode(sender.utf8) else { return sender }
    return name
  }
}

// By the time of sending.
extension EntryFile: Comparable {
  package static func < (first: EntryFile, second: EntryFile) -> Bool {
    guard first.order == second.order else { return first.order < second.order }
    guard first.sender == second.sender else { return first.sender < second.sender }
    return first.indices.lowerBound < second.indices.lowerBound
  }
}
