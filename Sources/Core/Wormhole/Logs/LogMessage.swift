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
  /// Its number: one more than that of the message before it.
  public let number: Int
  /// When it was appended, by the system's clock: the time of its file.
  public let date: Date
  /// The process that appended it; nil for a file that another program put there.
  public let publisher: Publisher?
  /// What was appended.
  public let payload: PropertyListValue
  /// Whether it was delivered to its named subscriber before, and perhaps handled.
  public let isRedelivery: Bool
  /// How many messages just before it the reader has missed, because they were taken away first.
  public let missed: Int
  /// How many messages just before it could not be read: their files were damaged, or the power
  /// failed before they were on the disk. They stay where they are until they are taken away.
  public let unreadable: Int
}

/// Where a reader begins.
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
  /// With a message, or the oldest after it that is kept: then the reader learns how many it missed.
  /// A number after the end means the end.
  case number(Int)
  /// With the first message that was not appended before this, by the system's clock at that time.
  case date(Date)
}
