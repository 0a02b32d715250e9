import WormholePropertyLists

/// A log whose messages have one type of the program, with the promises of `Log`.
///
/// ```swift
/// struct Sale: Codable, Sendable { var film: String }
///
/// let sales = container.log("sales", of: Sale.self)
/// try await sales.append(Sale(film: "Metropolis"))
/// for try await sale in try await sales.subscribe("statistics") {
///   print(sale.number, try sale.content?.film ?? "", sale.missed)
/// }
/// ```
public struct TypedLog<Content: Codable & Sendable>: Sendable {
  /// The log itself, for its bounds.
  public let log: Log

  /// The messages of a reader, which lasts as long as they are used.
  public typealias Messages = TypedSequence<LogMessages, Content>

  /// Appends a message; see `Log.append`.
  ///
  /// - Parameters:
  ///   - content: Any `Codable` value that a property list can hold.
  ///   - durability: With `.durable` the message and all earlier ones survive a loss of power.
  ///   - deadline: How long to wait for other processes that append; by default 10 seconds from now.
  /// - Returns: The message's number: 1 for the first, and one more for each.
  /// - Throws: The error of encoding; otherwise as `Log.append`.
  @discardableResult
  public func append(
    _ content: Content, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Int {
    try await log.append(
      PropertyListValue(encoding: content), durability: durability, until: deadline)
  }

  /// Reads messages without a name; see `Log.read`.
  ///
  /// - Parameter start: Where to begin.
  /// - Throws: As `Log.read`.
  public func read(from start: LogStart = .beginning) async throws -> Messages {
    messages(of: try await log.read(from: start))
  }

  /// Reads for a named subscriber, from its stored position; see `Log.subscribe`.
  ///
  /// - Parameters:
  ///   - subscriber: Any string.
  ///   - start: Where a new subscriber begins.
  ///   - deadline: How long to wait for the process that reads under this name.
  /// - Throws: As `Log.subscribe`.
  public func subscribe(
    _ subscriber: String, from start: LogStart = .beginning,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Messages {
    messages(of: try await log.subscribe(subscriber, from: start, until: deadline))
  }

  /// Returns the messages of a reader, for `for try await`.
  ///
  /// - Parameter reader: A reader of this log.
  public func messages(of reader: Log.Reader) -> Messages {
    Messages(reader.messages()) { try $0.payload.decode() }
  }
}

extension SharedContainer {
  /// Returns the log with a name, for messages of one type of the program. Touches no file.
  ///
  /// - Parameters:
  ///   - name: Any string, compared byte by byte.
  ///   - content: The type of the messages.
  public func log<Content>(_ name: String, of content: Content.Type) -> TypedLog<Content> {
    TypedLog(log: log(name))
  }
}
