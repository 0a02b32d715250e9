import FoundationEssentials
import Synchronization
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem

/// The messages of a log on etcd.
///
/// ```
/// l/<name>          the log's state, as a value
/// l/<name>/h        a stamp, and the number of the last message in hex
/// l/<name>/m/<n>    a message: its payload, with the record of its publication; n has 16 hex digits
/// ```
///
/// **Appending** is a transaction: the state is the one the process knows, and `h` is unchanged. So
/// numbers have no gaps, and appear in order; `h` identifies a message whose answer was lost.
///
/// **Taking away.** First the state says that the oldest messages are gone; then they are deleted.
/// A number below its `first` is never used again.
final class EtcdLog: LogStore {
  /// What this process saw last.
  private struct Known: Sendable {
    /// The key of the state, and its content.
    let item: KeyValue
    let state: LogState
    var head: KeyValue?
    /// The number of the last message; nil if the head does not tell it.
    var last: Int?
    /// The revision at which this was so.
    var seen: Int64
    /// The bytes that this process has appended since it learned the state.
    var appended = 0
  }

  private let etcd: EtcdContainer
  private let name: String
  private let known = Mutex<Known?>(nil)

  init(_ etcd: EtcdContainer, _ name: String) {
    self.etcd = etcd
    self.name = name
  }

  private var stateKey: [UInt8] { etcd.key(.log, name) }
  private var headKey: [UInt8] { etcd.key(.log, name, part: "/h") }

  var path: String { etcd.location(of: stateKey) }

  /// What etcd has acknowledged stays.
  var boot: String { "etcd" }

  func open() -> (any OpenLog)? { EtcdOpenLog(etcd, name) }

  // MARK: Appending

  func append(
    _ bytes: [UInt8], to log: PlainLog, _ durability: Durability,
    until deadline: ContinuousClock.Instant
  ) -> sending any Waiting<LogAppended?> {
    StepwiseWait { [self] in
      try reporting("append to \"\(name)\"", path: path) {
        try step(bytes, to: log, until: deadline)
      }
    }
  }

  private func step(
    _ bytes: [UInt8], to log: PlainLog, until deadline: ContinuousClock.Instant
  ) throws -> WaitingStep<LogAppended?> {
    let etcd = etcd.until(CallLimit.callDeadline(deadline))
    guard var known = try known.withLock(\.self) ?? look(on: etcd),
      known.state.isCurrent(in: boot)
    else {
      self.known.withLock { $0 = nil }
      return .done(nil)
    }
    let record = PublicationRecord(
      peer: ActivePeers.single(in: log.container.root.path), base: .unknown, expiry: nil)
    let content = PublishedContent(bytes, record).bytes
    guard bytes.count <= known.state.bounds.bytes else {
      throw log.tooLarge(bytes.count, known.state)
    }
    try EtcdContainer.requireSize(of: content, "append to \"\(name)\"", path: path, remedy: "")
    let last = try known.last ?? EtcdOpenLog(etcd, name).last(upTo: known.state.furthest)
    let number = max(known.state.head, last) + 1
    let key = EtcdOpenLog.key(number, of: name, in: etcd)
    let commitRecord = EtcdContainer.CommitRecord(
      key: headKey, base: known.head, seen: known.seen,
      value: Array("\(Nonce.next()) \(String(number, radix: 16))".utf8))
    // If it fails, everything is read again.
    self.known.withLock { $0 = nil }
    let outcome = try etcd.commit(
      EtcdTransaction(
        if: known.item.unchanged + [.absent(key)], then: [.put(key: key, value: content)],
        otherwise: [.key(stateKey), .key(headKey)]), commitRecord)
    guard outcome.succeeded else {
      if outcome.results.count == 2 {
        let found = outcome.results.map(\.items.first)
        // If nothing else has changed, another program has taken the number.
        note(found, at: outcome.revision, isTaken: found == [known.item, known.head])
      }
      guard .now < deadline else {
        throw WormholeError(
          .timedOut, "append to \"\(name)\"", path: path,
          reason: "other processes append all the time, and the deadline passed",
          remedy: "try again, or with a later deadline")
      }
      return .again
    }
    known.head = commitRecord.item(at: outcome.revision)
    known.last = number
    known.seen = outcome.revision
    known.appended += content.count
    self.known.withLock { $0 = known }
    return .done(
      LogAppended(number, appended: known.appended, size: content.count, known.state))
  }

  var look: EtcdTransaction {
    EtcdTransaction(if: [], then: [.read(.key(stateKey)), .read(.key(headKey))])
  }

  private func look(on etcd: EtcdContainer) throws -> Known? {
    let found = try etcd.commit(look)
    note(found.results.map(\.items.first), at: found.revision)
    return known.withLock(\.self)
  }

  /// - Parameters:
  ///   - found: The keys of the state and of the head.
  ///   - isTaken: Whether there are later messages than the head says.
  private func note(_ found: [KeyValue?], at revision: Int64, isTaken: Bool = false) {
    known.withLock { known in
      // A state that cannot be read is reported where the log is begun.
      guard let item = found[0], item.isValue, let state = LogState(stored: item.value) else {
        known = nil
        return
      }
      let last = found[1] == nil ? 0 : EtcdOpenLog.number(ofHead: found[1], upTo: state.furthest)
      known = Known(
        item: item, state: state, head: found[1], last: isTaken ? nil : last, seen: revision)
    }
  }

  /// In one step, so a process that appends finds the state as it knows it, or none.
  func remove(_ log: PlainLog, until deadline: ContinuousClock.Instant) throws -> Bool {
    let etcd = etcd.until(CallLimit.callDeadline(deadline))
    guard try etcd.item(stateKey)?.isValue == true else { return false }
    _ = try etcd.repeating(
      EtcdTransaction(
        if: [.exists(etcd.formatKey)],
        then: [
          .delete(.key(stateKey)), .delete(.prefix(etcd.key(.log, name, part: "/"))),
        ]))
    return true
  }

  // MARK: Watching

  func watch(_ signal: @escaping @Sendable (Int) -> Void) throws -> any Cancelling {
    let key = headKey
    let report = { @Sendable (mirror: EtcdMirror) in
      signal(EtcdOpenLog.number(ofHead: mirror.item(key), upTo: LogState.largest) ?? 0)
    }
    let mirror = try EtcdMirror(etcd, range: .key(key), report)
    report(mirror)
    return mirror
  }
}

/// The messages of a log on etcd, for some looks.
final class EtcdOpenLog: OpenLog {
  /// How many messages are read at once.
  private static let page = 256
  /// How many messages one step deletes.
  private static let batch = 100

  private let etcd: EtcdContainer
  private let name: String
  /// Messages that were read together, from a number on, and the first that was not.
  private var found: (items: [Int: KeyValue], numbers: Range<Int>) = ([:], 0..<0)

  init(_ etcd: EtcdContainer, _ name: String) {
    self.etcd = etcd
    self.name = name
  }

  static func key(_ number: Int, of name: String, in etcd: EtcdContainer) -> [UInt8] {
    etcd.key(.log, name, part: "/m/" + LogState.digits(of: number))
  }

  private func key(_ number: Int) -> [UInt8] { Self.key(number, of: name, in: etcd) }

  private var all: KeyRange { .prefix(etcd.key(.log, name, part: "/m/")) }

  /// The number of a message's key; nil for any other.
  private static func number(_ item: KeyValue) -> Int? {
    item.key.lastIndex(of: UInt8(ascii: "/")).flatMap {
      LogState.number(ofDigits: item.key[($0 + 1)...])
    }
  }

  /// The number in the head; nil without one, or with one that this log cannot have reached.
  static func number(ofHead item: KeyValue?, upTo furthest: Int) -> Int? {
    let words = String(decoding: item?.value ?? [], as: UTF8.self).split(separator: " ")
    return words.last.flatMap { Int($0, radix: 16) }.flatMap {
      (1...furthest).contains($0) ? $0 : nil
    }
  }

  /// The last message by a listing.
  func last(upTo furthest: Int) throws -> Int {
    try numbers().filter { $0 <= furthest }.max() ?? 0
  }

  func status(_ number: Int) throws -> LogMessageStatus? {
    if !found.numbers.contains(number) { try readPage(from: number) }
    guard let item = found.items[number] else { return nil }
    var bytes = item.value
    let date = PublicationRecord.take(from: &bytes)?.publisher.date ?? .distantPast
    return LogMessageStatus(
      size: Int64(item.value.count), appended: Int64(max(0, date.timeIntervalSince1970)),
      date: date)
  }

  private func readPage(from number: Int) throws {
    let page = try etcd.client.page(
      .range(from: key(number), to: KeyRange.end(ofPrefix: etcd.key(.log, name, part: "/m/"))),
      limit: Self.page, until: etcd.callDeadline)
    let items = page.items.compactMap { item in Self.number(item).map { ($0, item) } }
    let end = page.isIncomplete ? (items.last?.0 ?? number) + 1 : LogState.largest
    found = (Dictionary(items) { $1 }, number..<max(number + 1, end))
  }

  func head(after number: Int) throws -> Int {
    let item = try etcd.item(etcd.key(.log, name, part: "/h"))
    return max(number, Self.number(ofHead: item, upTo: LogState.furthest(from: number)) ?? 0)
  }

  func numbers() throws -> [Int] {
    try etcd.read(all, keysOnly: true).items.compactMap(Self.number)
  }

  func read(_ number: Int) throws -> LogContent {
    guard let item = try etcd.item(key(number)) else { return .missing }
    var bytes = item.value
    let date = PublicationRecord.take(from: &bytes)?.publisher.date
    return .bytes(item.value, date ?? .distantPast)
  }

  func remove(_ numbers: [Int]) throws -> [String] {
    guard !numbers.isEmpty else { return [] }
    let there = Set(try self.numbers())
    let gone = numbers.filter(there.contains)
    // A log that was removed and begun again gives the numbers once more, under another state.
    guard let state = try etcd.item(etcd.key(.log, name)) else { return [] }
    var removed: [String] = []
    for some in gone.map(key).parts(of: Self.batch) {
      let outcome = try etcd.call().repeating(
        EtcdTransaction(if: state.unchanged, then: some.map { .delete(.key($0)) }))
      if outcome.succeeded { removed += some.map(etcd.location) }
    }
    return removed
  }
}

extension KeyValue {
  /// Whether it is a value's key, and the value was not removed.
  fileprivate var isValue: Bool { value.count > Stamp.bytes }
}

extension LogState {
  /// Reads the content of a value's key; nil if it is not the state of a log.
  fileprivate init?(stored content: [UInt8]) {
    var bytes = Array(content.dropFirst(Stamp.bytes))
    _ = PublicationRecord.take(from: &bytes)
    guard let value = PropertyListValue(found: bytes) else { return nil }
    self.init(value)
  }
}
