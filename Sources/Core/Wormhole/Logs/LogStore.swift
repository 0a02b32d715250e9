package import FoundationEssentials
package import WormholeSystem

/// The messages of a log: the part that depends on its engine.
package protocol LogStore: Located {
  /// The boot whose power failure may undo the last numbers; always the same where none can.
  var boot: String { get }

  /// Opens the messages for a few looks.
  ///
  /// - Returns: nil if there is no log.
  func open() throws -> (any OpenLog)?

  /// Returns the change that appends a message, in its step after the last.
  ///
  /// - Returns: nil if the log has to be begun first.
  func append(
    _ bytes: [UInt8], to log: PlainLog, _ durability: Durability,
    until deadline: ContinuousClock.Instant
  ) -> sending any Waiting<LogAppended?>

  /// Removes the log with its messages, but perhaps not what is appended at this moment.
  ///
  /// - Returns: whether there was a log.
  func remove(_ log: PlainLog, until deadline: ContinuousClock.Instant) throws -> Bool

  /// Calls a closure with the number of a message that has appeared; with the largest number if others
  /// may have appeared or vanished.
  func watch(_ signal: @escaping @Sendable (Int) -> Void) throws -> any Cancelling
}

/// The messages of a log that is open.
package protocol OpenLog {
  func status(_ number: Int) throws -> LogMessageStatus?

  /// Returns the last message.
  ///
  /// - Parameter number: the number of a message that was appended, or was taken away; 0 for none.
  func head(after number: Int) throws -> Int

  /// Returns the numbers of all messages, in no order.
  func numbers() throws -> [Int]

  func read(_ number: Int) throws -> LogContent

  /// - Returns: the places of the messages that existed, for people; in the order of the numbers.
  func remove(_ numbers: [Int]) throws -> [String]
}

/// A message as a look finds it.
package struct LogMessageStatus: Sendable {
  let size: Int64
  /// In seconds since 1970.
  let appended: Int64
  package let date: Date

  package init(size: Int64, appended: Int64, date: Date) {
    (self.size, self.appended, self.date) = (size, appended, date)
  }
}

/// The content of a message, with the time of appending.
package enum LogContent {
  case bytes([UInt8], Date)
  case missing
  /// Content of another program, or too large.
  case foreign
}

extension OpenLog {
  /// Returns the first message of a kind, from the first that a listing shows.
  ///
  /// A listing of a directory that changes at the same time may miss a message, but none appears before
  /// those with smaller numbers. So the ones just before it are checked.
  ///
  /// - Parameter first: the lowest number that may be returned.
  func first(
    _ first: Int, listed: Int, where isOfKind: (LogMessageStatus) -> Bool = { _ in true }
  ) throws -> Int {
    var found = listed
    while found > first, let status = try status(found - 1), isOfKind(status) { found -= 1 }
    return found
  }
}

/// The engine's operation for logs.
package protocol LogEngine: ContainerEngine {
  func log(_ name: String) -> any LogStore
}
