import FoundationEssentials
import WormholePropertyLists
package import WormholeSystem

/// The messages of a log in a directory; see `LogDirectory`.
struct DirectoryLog: LogStore {
  let directory: NamedDirectory

  var path: String { directory.path }
  /// A power failure may undo the last names.
  var boot: String { ProcessIdentity.boot }

  func open() throws -> (any OpenLog)? { try LogDirectory(directory) }

  /// Takes all messages away, in the same steps as the oldest; then the empty log is removed as by
  /// a sweep.
  func remove(_ log: PlainLog, until deadline: ContinuousClock.Instant) throws -> Bool {
    guard try directory.open() != nil else { return false }
    let end = try log.value.edit(.init(until: deadline)) { snapshot -> (Edit, Int) in
      guard var state = try LogState.read(snapshot, at: log.value.path),
        let place = try LogDirectory(directory)
      else { return (.keep, LogState.largest) }
      state.head = try place.head(after: log.memory.head(state))
      (state.first, state.bytes, state.setBounds) = (state.head + 1, 0, nil)
      return (.replace(try state.content.binaryBytes()), state.first)
    }
    try log.removeLeftovers(below: end)
    do {
      let change = Change<Bool>(directory, .init(until: deadline, repeatsAfterLoss: false)) {
        lease, _ in try log.removeFile(lease) && lease.removeSite()
      }
      if try change.run() { _ = try directory.removeIfEmpty() }
    } catch let error as WormholeError where error.code == .leaseLost {
      // The process that took the lease over is appending.
    }
    return true
  }

  func watch(_ signal: @escaping @Sendable (Int) -> Void) -> any Cancelling {
    directory.watch(part: LogDirectory.entries, .names) { news in
      signal(
        news.isEverything || !news.own.isEmpty
          ? LogState.largest : news.names.keys.compactMap(LogDirectory.number).max() ?? 0)
    }
  }

  package func append(
    _ bytes: [UInt8], to log: PlainLog, _ durability: Durability,
    until deadline: ContinuousClock.Instant
  ) -> sending any Waiting<LogAppended?> {
    let boot = boot
    let record = PublicationRecord(
      peer: ActivePeers.single(in: log.container.root.path), base: .unknown, expiry: nil)
    let content = PublishedContent(bytes, record)
    // Written before the lease is taken.
    let isPrepared = durability == .durable || bytes.count >= 65_536
    let prepare: (@Sendable () -> PublishedContent)? = isPrepared ? { @Sendable in content } : nil
    return Change(
      directory, protecting: log.value.fileName, .init(durability, until: deadline),
      preparing: prepare
    ) { lease, prepared in
      guard let state = try log.memory.state(of: log.value), state.isCurrent(in: boot)
      else { return nil }
      guard bytes.count <= state.bounds.bytes else { throw log.tooLarge(bytes.count, state) }
      let staged = try lease.stage(content, prepared)
      let number = try Self.moveOut(staged, lease, after: log.memory.head(state))
      if durability == .durable { try lease.synchronize(path: LogDirectory.entries) }
      return LogAppended(
        number, appended: log.memory.note(number, bytes: content.count, in: state),
        size: content.count, state)
    }
  }

  /// Gives a message the number after the last.
  private static func moveOut(
    _ staged: String, _ lease: Lease, after known: Int
  ) throws -> Int {
    var head = known
    for _ in 0..<renameRaceLimit {
      guard head < LogState.largest else { throw Errno.invalidArgument }
      if try lease.add(staged, as: LogDirectory.path(head + 1), in: LogDirectory.entries) {
        return head + 1
      }
      // Other processes have appended since.
      head = try LogDirectory.head(after: head) { number throws(Errno) in
        try lease.seesFile(LogDirectory.path(number))
      }
    }
    throw Errno.deviceBusy
  }
}

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
/// `first`, which are removed by a sweep, or by the next process that appends after a boot.
package final class LogDirectory: OpenLog {
  private let root: ContainerRoot
  private let place: String
  private let descriptor: FileDescriptor

  package static let entries = "entries"

  /// The same as rows.
  package static let parts = [
    ContainerPart(ValueFile.name(of: .log), .content),
    ContainerPart(entries, parts: [ContainerPart(each: .message) { number($0) != nil }]),
    .lease, .identifier(copied: .whole),
  ]

  /// - Returns: nil if there is no log.
  package init?(_ directory: NamedDirectory) throws {
    guard let opened = try directory.open() else { return nil }
    (root, place) = (directory.root, directory.path)
    descriptor = opened
  }

  package static func path(_ number: Int) -> String {
    entries + "/" + LogState.digits(of: number) + EntryFile.suffix
  }

  /// Parses the name of a message's file; nil for any other.
  package static func number(_ name: FileName) -> Int? {
    let suffix = EntryFile.suffix.utf8
    guard name.bytes.suffix(suffix.count).elementsEqual(suffix) else { return nil }
    return LogState.number(ofDigits: name.bytes.dropLast(suffix.count))
  }

  package func status(_ number: Int) throws -> LogMessageStatus? {
    try ifPresent(fileStatus(Self.path(number), at: descriptor.rawValue)).map {
      LogMessageStatus(size: $0.size, appended: $0.modifiedSeconds, date: $0.modified)
    }
  }

  /// Returns the last message of a log.
  ///
  /// - Parameters:
  ///   - number: the number of a message that was appended, or was taken away; 0 for none.
  ///   - exists: whether there is a message.
  /// - Complexity: two calls for each doubling of the distance, and ten for a gap: a message that another
  ///   program has removed is not the end, unless as many are missing as follow.
  static func head(
    after number: Int, _ exists: (Int) throws(Errno) -> Bool
  ) throws(Errno) -> Int {
    var low = number
    while true {
      var step = 1
      while low + step <= LogState.largest, try exists(low + step) {
        low += step
        step *= 2
      }
      var high = low + step
      while high - low > 1 {
        let middle = low + (high - low) / 2
        if try exists(middle) { low = middle } else { high = middle }
      }
      guard let next = try afterGap(low, exists) else { return low }
      low = next
    }
  }

  /// Returns a message after a gap that follows a number; nil if there is none.
  private static func afterGap(
    _ number: Int, _ exists: (Int) throws(Errno) -> Bool
  ) throws(Errno) -> Int? {
    var step = 2
    while step <= LogState.stride, number + step <= LogState.largest {
      if try exists(number + step) { return number + step }
      step *= 2
    }
    return nil
  }

  package func head(after number: Int) throws -> Int {
    try Self.head(after: number) { number throws(Errno) in
      try exists(Self.path(number), at: descriptor.rawValue)
    }
  }

  package func numbers() throws -> [Int] {
    try (ContainerRoot.entries(Self.entries, at: descriptor.rawValue) ?? [])
      .compactMap { Self.number($0.name) }
  }

  package func read(_ number: Int) throws -> LogContent {
    let found = try root.readEntryAgain(
      Self.path(number), at: descriptor.rawValue, beside: descriptor.status(),
      maximumBytes: SharedContainer.maximumFileBytes)
    return switch found {
    case .bytes(let bytes, let status): .bytes(bytes, status.modified)
    case .foreign: .foreign
    case .missing: .missing
    }
  }

  /// Returns why readers pass a message; nil if they get it, or there is none.
  package func fault(of number: Int) throws -> String? {
    switch try read(number) {
    case .missing: return nil
    case .foreign: return "it is not a file of this container's users, or too large"
    case .bytes(var bytes, _):
      _ = PublicationRecord.take(from: &bytes)
      do throws(PropertyListError) {
        _ = try PropertyListValue(bytes: bytes)
        return nil
      } catch {
        return error.reason
      }
    }
  }

  @discardableResult
  package func remove(_ numbers: [Int]) throws -> [String] {
    var removed: [String] = []
    for path in numbers.map(Self.path) {
      // A directory is not a log's file, so we must not delete it; it is reported as foreign.
      let isRemoved = try tolerating(
        [.isDirectory], removeIfPresent(path, at: descriptor.rawValue))
      if isRemoved == true { removed.append(place + "/" + path) }
    }
    return removed
  }

  /// Removes the directory of the messages if it is empty.
  package func removeEntries() throws(Errno) -> Bool {
    try tolerating(
      [.directoryNotEmpty, .alreadyExists],
      ifPresent(removeDirectory(Self.entries, at: descriptor.rawValue))) != nil
  }

  package func hasEntries() throws(Errno) -> Bool {
    try ContainerRoot.entries(Self.entries, at: descriptor.rawValue)?.isEmpty == false
  }
}

extension DirectoryEngine: LogEngine {
  package func log(_ name: String) -> any LogStore {
    DirectoryLog(directory: NamedDirectory(root: root, kind: .log, identifier: name))
  }
}
