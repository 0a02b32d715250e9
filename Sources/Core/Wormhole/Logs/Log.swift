public import WormholePropertyLists
import WormholeSystem

/// A channel with history: messages with consecutive numbers, appended by any process, and read by
/// any number of subscribers, each at its own pace.
///
/// A **named** subscriber reads every message once, across restarts, because its position is
/// stored. `LogReader` explains what happens when it is killed. A reader without a name begins
/// anywhere, and its position is forgotten.
///
/// The log is **bounded**, by the number of its messages, their bytes and their age. The oldest
/// messages are removed first; a subscriber that had not read them learns exactly how many it
/// missed, because numbers are consecutive. The log does not wait for slow subscribers.
///
/// ```swift
/// struct Sale: Codable, Sendable { var film: String }
///
/// let sales = container.log("sales", of: Sale.self)
/// try await sales.append(Sale(film: "Metropolis"))
///
/// for try await sale in try await sales.subscribe("printer").messages() {
///   print(sale.number, try sale.content.film, sale.missed)
/// }
/// ```
///
/// In a directory messages are appended under the log's lease, by one rename whose source is the
/// lease's own directory (rule 2). So a writer that was stopped in the middle, and replaced, appends
/// nothing; and when a message is visible, so are all earlier ones. A reader needs no lock. On etcd an
/// append is one transaction, with the same promises.
public struct Log<Content: Codable & Sendable>: Sendable {
  /// The container that the log is in.
  public let container: SharedContainer
  /// The log's name.
  public let name: String

  /// The log's file `log.plist`, under whose lease messages are appended.
  package let value: PlainValue
  package let store: any LogStore
  let memory: LogMemory

  package init(container: SharedContainer, name: String) {
    self.init(container, name, LogMemory())
  }

  private init(
    _ container: SharedContainer, _ name: String, _ memory: LogMemory, _ value: PlainValue? = nil,
    _ store: (any LogStore)? = nil
  ) {
    self.container = container
    self.name = name
    self.memory = memory
    self.value = value ?? PlainValue(container: container, identifier: name, kind: .log)
    self.store = store ?? container.engine(as: (any LogEngine).self).log(name)
  }

  /// The same log, whatever its content is.
  package var plain: PlainLog { PlainLog(container, name, memory, value, store) }

  /// Returns this log for a caller with a deadline; see `SharedContainer.limited`.
  func limited(until deadline: ContinuousClock.Instant?) -> PlainLog {
    let limited = container.limited(until: deadline)
    return limited === container ? plain : PlainLog(limited, name, memory)
  }

  /// The path of the log's directory, which need not exist; on etcd its key.
  public var path: String { store.path }

  // MARK: Appending

  /// Appends a message; it can be read when this returns.
  ///
  /// - Parameters:
  ///   - content: any value that a property list can hold.
  ///   - durability: with `.durable` the message survives a loss of power from then on, as do all
  ///     earlier ones.
  ///   - deadline: how long to wait for other processes that append; by default 10 seconds from now.
  /// - Returns: the message's number: 1 for the first, and one more for each.
  /// - Throws: the error of encoding; `WormholeError.Code.timedOut`, naming the process that
  ///   appends; `.tooLarge` if the message alone exceeds the bounds; `.unsupportedValue` for a value
  ///   outside property lists; `.damaged` for a damaged `log.plist`; or errors of the file system. The
  ///   message is then not appended, except after an error of the last fsyncs of `.durable`, or of
  ///   taking old messages away.
  /// - Complexity: as replacing a value: create, write, set the time, one rename, and nine cheap
  ///   calls for the lease; `.durable` adds one fsync on ext4 and xfs, three elsewhere. Taking old
  ///   messages away costs an unlink for each, and a publication for each sixteenth of the bound.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func append(
    _ content: Content, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Int {
    try appending(encoded(content), durability, until: deadline).run()
  }

  /// Appends a message; see the form without `async`. Cancelling the task ends the wait for other
  /// processes with `CancellationError`; the message is not appended then.
  @discardableResult
  public func append(
    _ content: Content, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Int {
    let bytes = try encoded(content)
    return try await runSuspending { appending(bytes, durability, until: deadline) }
  }

  private func appending(
    _ bytes: [UInt8], _ durability: Durability, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Int> {
    let deadline = deadline ?? .now + SharedContainer.standardWait
    var change = store.append(bytes, to: plain, durability, until: deadline)
    return StepwiseWait {
      try change.step().then { appended in
        guard let appended else {
          try limited(until: deadline).begin(until: deadline)
          change = store.append(bytes, to: plain, durability, until: deadline)
          return .again
        }
        if appended.isTrimDue { try limited(until: deadline).trim(until: deadline) }
        return .done(appended.number)
      }
    }
  }

  private func encoded(_ content: Content) throws -> [UInt8] {
    do {
      return try PropertyListValue(encoding: content).binaryBytes(limits: .standard)
    } catch let error as PropertyListError {
      throw WormholeError.unacceptable(error, "append to \"\(name)\"", path: path)
    }
  }

  // MARK: Removing

  /// Removes the log, its messages, its bounds, and the positions of subscribers not reading now.
  ///
  /// What a process appends at this moment, or later, begins another log of the name. A reader
  /// continues with the new log's first message; if it was behind, it may get a few messages twice.
  /// If this process is killed, the log is as before, or without messages and bounds; a sweep then
  /// removes it.
  ///
  /// - Parameter deadline: how long to wait for other processes that append; by default 10 seconds from now.
  /// - Returns: whether there was a log.
  /// - Throws: `WormholeError`: as `append`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func remove(until deadline: ContinuousClock.Instant? = nil) throws -> Bool {
    let deadline = deadline ?? .now + SharedContainer.standardWait
    return try reporting("remove \"\(name)\"", path: path) {
      let log = limited(until: deadline)
      guard try log.store.remove(log, until: deadline) else { return false }
      // The faults of other logs change nothing here.
      _ = try Diagnostics.reportingFaults { faults in
        try PlainLog.sweepPositions(in: log.container, &faults, until: deadline)
      }
      return true
    }
  }

  /// Removes the log; see the form without `async`.
  @discardableResult
  public func remove(until deadline: ContinuousClock.Instant? = nil) async throws -> Bool {
    try await Blocking.run { try remove(until: deadline) }
  }

  // MARK: Bounds

  /// The bounds of the log.
  ///
  /// - Throws: `WormholeError`: as reading a value.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func bounds() throws -> LogBounds { try memory.state(of: value)?.bounds ?? .standard }

  /// The bounds of the log; see the form without `async`.
  public func bounds() async throws -> LogBounds {
    try await Blocking.run { try bounds() }
  }

  /// Sets the bounds of the log, for all processes, and takes away the messages that exceed them.
  ///
  /// - Parameters:
  ///   - bounds: the new bounds; they stay until they are set again.
  ///   - deadline: how long to wait for other processes that append; by default 10 seconds from now.
  /// - Throws: `WormholeError`: as `append`.
  /// - Complexity: a durable publication; then as for taking messages away.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func setBounds(
    _ bounds: LogBounds, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    let deadline = deadline ?? .now + SharedContainer.standardWait
    let limited = limited(until: deadline)
    try limited.begin(bounds, until: deadline)
    try limited.trim(until: deadline)
  }

  /// Sets the bounds of the log; see the form without `async`.
  public func setBounds(
    _ bounds: LogBounds, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await Blocking.run { try setBounds(bounds, until: deadline) }
  }
}

/// The bounds of a log. Once they are exceeded by a sixteenth, the next message that is appended
/// takes the oldest away until they hold; each appending process counts the bytes of the last
/// messages for itself.
///
/// ```swift
/// // A week of sales, at most 100,000 of them.
/// let bounds = LogBounds(messages: 100_000, bytes: 64 << 20, age: .seconds(7 * 86_400))
/// try await container.log("sales").setBounds(bounds)
/// ```
public struct LogBounds: Sendable, Hashable, Encodable {
  /// The largest number of messages.
  public var messages: Int
  /// The largest total size of their files in bytes; no larger message is accepted.
  public var bytes: Int
  /// The age at which a message is removed; nil means never. The next message or the next sweep
  /// removes it; until then it is delivered.
  public var age: Duration?

  /// Ten thousand messages, 64 MiB, any age.
  public static let standard = LogBounds(messages: 10_000, bytes: 64 << 20)

  /// Creates bounds.
  ///
  /// - Parameters:
  ///   - messages: the largest number of messages, at least 1.
  ///   - bytes: the largest total size of their files in bytes.
  ///   - age: the age at which a message is removed.
  public init(messages: Int, bytes: Int, age: Duration? = nil) {
    self.messages = max(1, messages)
    self.bytes = max(1, bytes)
    self.age = age
  }
}

/// A log for code that looks at no content, or has it as a property list.
package typealias PlainLog = Log<PropertyListValue>

extension SharedContainer {
  /// Returns the log with a name, with property lists as messages; see the form with a type.
  public func log(_ name: String) -> Log<PropertyListValue> {
    log(name, of: PropertyListValue.self)
  }

  /// Returns the log with a name; no file is touched before it is used. Keep it to append many
  /// messages: it remembers where the log ends.
  ///
  /// - Parameters:
  ///   - name: any string, compared byte by byte.
  ///   - content: the type of the messages.
  public func log<Content>(_ name: String, of content: Content.Type) -> Log<Content> {
    Log(container: self, name: name)
  }

  /// Returns the names of all logs that were ever appended to or read, in no order.
  ///
  /// - Throws: `WormholeError` for errors of the file system.
  public func logNames() throws -> [String] { try identifiers(of: .log) }
}
