public import FoundationEssentials
public import WormholePropertyLists
import WormholeSystem

/// The position of a reader, and its steps, none of which waits.
struct LogReading: Sendable {
  /// The position to be stored.
  private var position = LogCursor.Position(log: "", next: 1)
  private var saved: LogCursor.Position?
  /// Whether this reader has delivered the next message, not only an earlier process.
  private var isHeld = false
  /// What it has passed since the last message that it delivered.
  private(set) var missed = 0
  private(set) var unreadable = 0
  /// The highest number that is known to have appeared. If the next message is missing before that,
  /// the log is listed, because a part was lost, not taken away. It is also listed once at first.
  private var highest = LogState.largest
  /// Whether it was listed since this reader began there.
  private var hasListed = false

  /// Begins without a name.
  mutating func begin(at next: Int, _ log: PlainLog) throws {
    position = .init(log: try log.memory.state(of: log.value)?.id ?? "", next: next)
  }

  mutating func begin(at position: LogCursor.Position) {
    self.position = position
    saved = position
  }

  mutating func seek(to next: Int) {
    move(to: next)
    (missed, unreadable) = (0, 0)
    (highest, hasListed) = (LogState.largest, false)
  }

  /// Counts the message that was delivered as read.
  mutating func finish() {
    if isHeld { move(to: position.next + 1) }
  }

  mutating func deliver() {
    position.isDelivered = true
    isHeld = true
    (missed, unreadable) = (0, 0)
  }

  private mutating func move(to next: Int) {
    position.next = next
    position.isDelivered = false
    isHeld = false
  }

  /// Returns the position if it has to be published: if it differs from the stored one, and before
  /// each delivery. A message that is delivered again changes nothing in it, but publishing finds
  /// out whether another process reads by now.
  func unsaved(_ durability: Durability) -> LogCursor.Position? {
    saved == position && !isHeld && durability == .standard ? nil : position
  }

  mutating func noteSaved() { saved = position }

  /// Returns the next message; nil if there is none yet.
  ///
  /// - Parameter highest: the highest number that has appeared recently.
  mutating func look<Content>(
    _ log: PlainLog, _ highest: Int
  ) throws -> LogMessage<Content>? {
    self.highest = max(self.highest, highest)
    guard let open = try log.store.open() else { return nil }
    while position.next < LogState.largest {
      switch try open.read(position.next) {
      case .bytes(var bytes, let date):
        let publisher = PublicationRecord.take(from: &bytes)?.publisher
        // A damaged one stays in place, because its number shows that there was a message.
        if let payload = try? PropertyListValue(bytes: bytes) {
          return message(payload, date, publisher: publisher)
        }
        passUnreadable()
      case .foreign: passUnreadable()
      case .missing:
        guard try skip(log, open) else { return nil }
      }
    }
    return nil
  }

  private mutating func passUnreadable() {
    unreadable += 1
    move(to: position.next + 1)
  }

  private func message<Content>(
    _ payload: PropertyListValue, _ date: Date, publisher: Publisher?
  ) -> LogMessage<Content> {
    LogMessage(
      number: position.next, date: date, publisher: publisher, payload: payload,
      isRedelivery: position.isDelivered, missed: missed, unreadable: unreadable)
  }

  /// Skips messages that are gone.
  ///
  /// - Returns: false if the next one has not been appended yet.
  private mutating func skip(_ log: PlainLog, _ open: any OpenLog) throws -> Bool {
    var furthest = LogState.largest
    if let state = try log.memory.state(of: log.value) {
      furthest = state.furthest
      if position.log.isEmpty { position.log = state.id }
      guard position.log == state.id else {
        // The log was removed, and began again.
        position.log = state.id
        move(to: state.first)
        (highest, hasListed) = (LogState.largest, false)
        return true
      }
      if position.next < state.first { return jump(to: state.first) }
      // Without events each look may find something new, which a listing of a long log is too much for.
      if highest == LogState.largest, hasListed, try isAtEnd(of: open, state) { highest = 0 }
    }
    guard highest > position.next else { return false }
    (highest, hasListed) = (0, true)
    let numbers = try open.numbers().filter { $0 <= furthest }
    guard let found = numbers.filter({ $0 > position.next }).min() else {
      return try goBack(log, open, numbers)
    }
    return jump(to: try open.first(position.next, listed: found))
  }

  /// Returns whether there is no later message, and the one that was read last is still there, so that
  /// the log is not an older one.
  private func isAtEnd(of open: any OpenLog, _ state: LogState) throws -> Bool {
    let last = position.next - 1
    guard state.head <= last else { return false }
    let isThere = try last < state.first || open.status(last) != nil
    return try isThere && open.head(after: last) == last
  }

  /// Goes back to the end of the log if that lies before the messages that were read: the container
  /// was replaced by an older state of itself, so numbers that were read are used again.
  private mutating func goBack(
    _ log: PlainLog, _ open: any OpenLog, _ numbers: [Int]
  ) throws -> Bool {
    guard let state = try log.memory.state(of: log.value), position.next > state.first,
      numbers.max() ?? 0 < position.next - 1
    else { return false }
    // A listing of a directory that changes at the same time may miss a message.
    let end = try open.head(after: max(state.head, numbers.max() ?? 0))
    guard end < position.next - 1, try log.memory.state(of: log.value) == state
    else { return false }
    move(to: end + 1)
    return true
  }

  private mutating func jump(to next: Int) -> Bool {
    missed += next - position.next
    move(to: next)
    return true
  }
}

extension PlainLog {
  /// Returns the first message of a reader that begins at a position.
  func position(of start: LogStart) throws -> Int {
    try reporting("read \"\(name)\"", path: path) {
      let state = try memory.state(of: value)
      let first = state?.first ?? 1
      guard let open = try store.open() else { return first }
      let furthest = state?.furthest ?? LogState.largest
      let numbers = try open.numbers().filter { $0 <= furthest }
      let end = max(try open.head(after: memory.head(state)), numbers.max() ?? 0)
      if let state { memory.note(end, in: state) }
      switch start {
      case .beginning: return try open.first(first, listed: max(first, numbers.min() ?? end + 1))
      case .end: return end + 1
      case .number(let number): return min(max(number, 1), end + 1)
      case .date(let date):
        let found = try numbers.sorted().first { number in
          try open.status(number).map { $0.date >= date } ?? false
        }
        return try open.first(first, listed: found ?? end + 1) { $0.date >= date }
      }
    }
  }
}

/// A message of a log, as a reader gets it.
///
/// ```swift
/// let reader = try await container.log("sales", of: String.self).subscribe("statistics")
/// let message = try await reader.next()
/// if message.missed > 0 { print("\(message.missed) messages were gone before this one") }
/// print(message.number, message.date, message.publisher?.program ?? "?", try message.content)
/// ```
public struct LogMessage<Content: Codable & Sendable>: Sendable, Hashable {
  /// Its number: one more than the number of the message before it.
  public let number: Int
  /// The time of appending, by the system's clock: the time of its file.
  public let date: Date
  /// The process that appended it; nil for a file that another program put there.
  public let publisher: Publisher?
  /// The appended content as a property list, whatever its type is.
  public let payload: PropertyListValue
  /// Whether it was delivered to its named subscriber before, and perhaps handled.
  public let isRedelivery: Bool
  /// How many messages just before it the reader has missed, because they were taken away.
  public let missed: Int
  /// The number of unreadable messages just before it: their files were damaged, or the power
  /// failed before they were on the disk. They stay in place until they are taken away.
  public let unreadable: Int

  /// The appended content. Throws `DecodingError` for content of another shape, which ends no loop
  /// over messages.
  public var content: Content { get throws { try payload.decode() } }
}

/// The position at which a reader begins.
///
/// ```swift
/// let today = try await container.log("sales").read(from: .date(Date(timeIntervalSinceNow: -86_400)))
/// for try await message in today.messages() { print(message.payload) }
/// ```
public enum LogStart: Sendable, Hashable {
  /// With the oldest message that is kept.
  case beginning
  /// With the first message that is appended from now on.
  case end
  /// With a message, or the oldest kept message after it; then the reader learns how many it
  /// missed. A number after the end means the end.
  case number(Int)
  /// With the first message that was not appended before this, by the system's clock at that time.
  case date(Date)
}
