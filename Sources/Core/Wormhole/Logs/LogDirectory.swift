package import WormholeSystem

/// `logs/<name>/`, open: its messages, and the steps that create and remove them.
///
/// ```
/// log.plist            see `LogState`; published under the lease, as any value
/// entries/<number>.plist   a message: exactly its payload; 16 hex digits, so that names sort
/// lease/               held to append, and to publish log.plist
/// ```
///
/// **Appending.** The holder of the lease writes the message into the lease, and moves it out to the
/// number after the last, by one rename that replaces nothing. So numbers have no gaps, and appear in
/// their order. The end of the log is found from any older number by looking at later ones: the steps
/// double as long as there is a message, and then bisect.
///
/// **Taking away.** `log.plist` first says that the oldest messages are gone; then they are unlinked.
/// A number below `first` is never used again, so this needs no lease.
///
/// **What a crash leaves**: a message in the lease, which the next holder removes; messages below
/// `first`, which a sweep removes, and the next process that appends after a start of the machine.
package struct LogDirectory: ~Copyable {
  private let root: ContainerRoot
  private let descriptor: FileDescriptor

  package static let entries = "entries"

  /// The same as rows.
  static let parts = [
    ContainerPart(ValueFile.name(of: .log), .content),
    ContainerPart(entries, parts: [ContainerPart(each: .message) { number($0) != nil }]),
    .lease, .identifier(copied: .whole),
  ]

  /// Opens a log's directory.
  ///
  /// - Returns: nil if there is none.
  package init?(_ log: Log) throws {
    try log.container.requireDirectory(
      "use the log \"\(log.name)\"", remedy: "take a queue, or a container that is a directory")
    guard let opened = try log.value.directory.open() else { return nil }
    root = log.container.root
    descriptor = opened
  }

  package static func path(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return entries + "/" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
      + EntryFile.suffix
  }

  /// Parses the name of a message's file; nil for any other.
  package static func number(_ name: FileName) -> Int? {
    let digits = name.bytes.prefix(16)
    guard name.bytes.count == 16 + EntryFile.suffix.utf8.count, digits.allSatisfy(Nonce.isDigit),
      name.bytes.dropFirst(16).elementsEqual(EntryFile.suffix.utf8),
      let number = Int(String(decoding: digits, as: UTF8.self), radix: 16),
      LogState.numbers.contains(number)
    else { return nil }
    return number
  }

  func status(_ number: Int) throws(Errno) -> FileStatus? {
    try ifPresent(fileStatus(Self.path(number), at: descriptor.rawValue))
  }

  /// Returns the last message of a log.
  ///
  /// - Parameters:
  ///   - number: the number of a message that was appended, or was taken away; 0 for none.
  ///   - exists: whether there is a message.
  /// - Complexity: two calls for each doubling of the distance.
  static func head(
    after number: Int, _ exists: (Int) throws(Errno) -> Bool
  ) throws(Errno) -> Int {
    var (low, step) = (number, 1)
    while low + step <= LogState.largest, try exists(low + step) {
      low += step
      step *= 2
    }
    var high = low + step
    while high - low > 1 {
      let middle = low + (high - low) / 2
      if try exists(middle) { low = middle } else { high = middle }
    }
    return low
  }

  func head(after number: Int) throws(Errno) -> Int {
    try Self.head(after: number) { number throws(Errno) in try status(number) != nil }
  }

  /// Returns the numbers of all messages, in no order.
  package func numbers() throws(Errno) -> [Int] {
    try (SharedContainer.entries(Self.entries, at: descriptor.rawValue) ?? [])
      .compactMap { Self.number($0.name) }
  }

  /// Returns the first message of a kind, from the first that a listing shows.
  ///
  /// A listing of a directory that changes at the same time may miss a message, but none appears before
  /// those with smaller numbers. So the ones just before it are checked.
  ///
  /// - Parameter first: the lowest number that may be returned.
  func first(
    _ first: Int, listed: Int, where isOfKind: (FileStatus) -> Bool = { _ in true }
  ) throws(Errno) -> Int {
    var found = listed
    while found > first, let status = try status(found - 1), isOfKind(status) { found -= 1 }
    return found
  }

  func read(_ number: Int) throws(Errno) -> EntryContent {
    try root.readEntry(
      Self.path(number), at: descriptor.rawValue, beside: descriptor.status(),
      maximumBytes: Value.maximumFileBytes)
  }

  /// Unlinks messages that were taken away.
  ///
  /// - Returns: the messages that existed.
  @discardableResult
  package func remove(_ numbers: some Sequence<Int>) throws(Errno) -> [Int] {
    var removed: [Int] = []
    for number in numbers {
      // A directory is no file, so we must not delete it; it is reported as foreign.
      let isRemoved = try tolerating(
        [.isDirectory], removeIfPresent(Self.path(number), at: descriptor.rawValue))
      if isRemoved == true { removed.append(number) }
    }
    return removed
  }

  /// Removes the directory of the messages if it is empty.
  package func removeEntries() throws(Errno) -> Bool {
    try tolerating(
      [.directoryNotEmpty, .alreadyExists],
      ifPresent(removeDirectory(Self.entries, at: descriptor.rawValue))) != nil
  }

  /// Returns whether a message is in the log.
  package func hasEntries() throws(Errno) -> Bool {
    try SharedContainer.entries(Self.entries, at: descriptor.rawValue)?.isEmpty == false
  }
}
