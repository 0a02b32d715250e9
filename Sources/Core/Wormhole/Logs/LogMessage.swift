public import FoundationEssentials
public import WormholePropertyLists

/// A message of a log, as a reader gets it.
///
/// ```swift
/// let reader = try await container.log("sales").subscribe("statistics")
/// let message = try await reader.next()
/// if message.missed > 0 { print("\(message.missed) messages were gone before this one") }
/// print(message.number, message.date, message.publisher?.program ?? "?", message.payload)
/// ```
public struct LogMessage: Sendable, Hashable {
  /// Its number: one more than the number of the message before it.
  public let number: Int
  /// The time of appending, by the system's clock: the time of its file.
  public let date: Date
  /// The process that appended it; nil for a file that another program put there.
  public let publisher: Publisher?
  /// The appended content.
  public let payload: PropertyListValue
  /// Whether it was delivered to its named subscriber before, and perhaps handled.
  public let isRedelivery: Bool
  /// How many messages just before it the reader has missed, because they were taken away.
  public let missed: Int
  /// The number of unreadable messages just before it: their files were damaged, or the power
  /// failed before they were on the disk. They stay in place until they are taken away.
  public let unreadable: Int
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
