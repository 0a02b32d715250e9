package import WormholePropertyLists
import WormholeSystem

/// The position of a named subscriber: the package's own value `log/<log>/<subscriber>`.
///
/// Only the process that is exclusively present under the same name reads for the subscriber, and each
/// of its steps publishes the position with the id of its registration, under the value's lease, and
/// only if that id is still there. So a process that was replaced while it was stopped does not
/// move it, and delivers nothing more.
package struct LogCursor: Sendable {
  package struct Position: Sendable, Equatable {
    var log: String
    /// The first message that is not read.
    package var next: Int
    /// Whether that message was delivered, and perhaps handled.
    package var isDelivered = false
    /// The last boot of the machine that was known when it was published.
    var boot = ""
    /// The registration that reads; empty if none does.
    var reader = ""

    init(log: String, next: Int) {
      self.log = log
      self.next = next
    }

    package init?(_ value: PropertyListValue) {
      guard let log = value["log"]?.stringValue, let next = value["next"]?.intValue,
        LogState.numbers.contains(next)
      else { return nil }
      self.log = log
      self.next = next
      isDelivered = value["delivered"] == true
      boot = value["boot"]?.stringValue ?? ""
      reader = value["reader"]?.stringValue ?? ""
    }

    var content: PropertyListValue {
      [
        "log": .string(log), "next": PropertyListValue(next), "delivered": .boolean(isDelivered),
        "boot": .string(boot), "reader": .string(reader),
      ]
    }
  }

  private static let prefix = "log/"

  let log: PlainLog
  let subscriber: String
  let registration: PresenceRegistration

  /// The name of a subscriber's value and presence in `own/`.
  static func name(_ subscriber: String, of log: String) -> String {
    prefix + EncodedName(log).component + "/" + subscriber
  }

  /// Returns the name of the log's directory, and the subscriber, of an own name; nil for any other name.
  package static func subscriber(
    ofOwnName name: String
  ) -> (directory: String, subscriber: String)? {
    guard name.utf8.starts(with: prefix.utf8) else { return nil }
    // By bytes, because the first letter of a subscriber may combine with the slash.
    let rest = Array(name.utf8.dropFirst(prefix.utf8.count))
    guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    return (
      String(decoding: rest[..<slash], as: UTF8.self),
      String(decoding: rest[(slash + 1)...], as: UTF8.self)
    )
  }

  static func value(_ subscriber: String, of log: PlainLog) -> PlainValue {
    log.container.own.value(name(subscriber, of: log.name))
  }

  static func presence(_ subscriber: String, of log: PlainLog) -> Presence {
    log.container.own.presence(name(subscriber, of: log.name))
  }

  private var value: PlainValue { Self.value(subscriber, of: log) }

  /// Takes the position over from the previous process.
  ///
  /// - Parameter start: the first position of a new subscriber.
  func takeOver(
    _ state: LogState, until deadline: ContinuousClock.Instant?,
    start: @escaping @Sendable () throws -> Int
  ) throws -> Position {
    let (id, boot) = (registration.id, state.boots.last?.id ?? log.store.boot)
    let move: @Sendable (inout PropertyListValue?) throws -> Position = { content in
      let old = content.flatMap(Position.init)
      var position: Position
      if let old, old.log == state.id {
        position = old
        position.next = state.next(old.next, asOf: old.boot)
        position.isDelivered = old.isDelivered && position.next == old.next
      } else {
        // A new subscriber; or a new log of the same name, of which it has read nothing.
        position = Position(log: state.id, next: try old == nil ? start() : state.first)
      }
      position.boot = boot
      position.reader = id
      content = position.content
      return position
    }
    if LeaseFault.claimingWithoutRole.isActive {
      return try value.edit(.init(until: deadline)) { snapshot in
        var content = try snapshot.propertyList()
        let position = try move(&content)
        return (.replace(try position.content.binaryBytes()), position)
      }
    }
    do {
      // Only under the role: a process that was stopped before this may have lost it by now.
      return try value.change(under: registration.fence.proof, .init(until: deadline), move).run()
    } catch let error as WormholeError where error.code == .leaseLost {
      throw replaced()
    }
  }

  /// Publishes a position.
  ///
  /// - Throws: `leaseLost` if another process reads for the subscriber by now.
  func save(
    _ position: Position, _ durability: Durability, until deadline: ContinuousClock.Instant?
  ) throws {
    let (id, cursor) = (registration.id, self)
    var position = position
    // What was appended by a container that has begun since is read, too.
    if log.container.isLocal, let last = try log.memory.state(of: log.value)?.boots.last {
      position.boot = last.id
    }
    var terms = ChangeTerms(durability, until: deadline)
    terms.absence = { cursor.replaced() }
    try value.edit(terms) { [position] snapshot in
      guard
        try LeaseFault.savingLate.isActive
          || snapshot.propertyList().flatMap(Position.init)?.reader == id
      else {
        throw cursor.replaced()
      }
      return (.replace(try position.content.binaryBytes()), ())
    }
  }

  private func replaced() -> WormholeError {
    WormholeError(
      .leaseLost, "read \"\(log.name)\" as \"\(subscriber)\"", path: log.path,
      reason: "another process reads under this name, because this one was stopped, or its "
        + "position was removed",
      remedy: "subscribe again")
  }
}

/// A named subscriber of a log, and its position.
///
/// ```swift
/// for subscriber in try await container.log("sales").subscribers() {
///   print(subscriber.name, "has", subscriber.behind, "messages to read")
/// }
/// ```
public struct LogSubscriber: Sendable, Hashable, Encodable {
  /// The name.
  public let name: String
  /// The first message that it has not read.
  public let next: Int
  /// The number of messages that it has not read, including those that were taken away.
  public let behind: Int
}

extension Log {
  /// Returns all named subscribers so far, in no order, unless they were forgotten.
  ///
  /// - Throws: `WormholeError` for errors of the file system. A position that cannot be read is left out.
  /// - Complexity: a listing of the package's own values, and one read for each subscriber.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func subscribers() throws -> [LogSubscriber] {
    let state = try memory.state(of: value)
    let head = try reporting("look for the end of \"\(name)\"", path: path) {
      try store.open()?.head(after: memory.head(state)) ?? 0
    }
    let own = EncodedName(name).component
    return try container.own.valueIdentifiers().compactMap { identifier in
      guard let (directory, subscriber) = LogCursor.subscriber(ofOwnName: identifier),
        directory == own
      else { return nil }
      do {
        guard
          let position = try container.own.value(identifier).read().flatMap(LogCursor.Position.init)
        else { return nil }
        let next = position.log == state?.id ? position.next : 1
        return LogSubscriber(name: subscriber, next: next, behind: max(0, head - next + 1))
      } catch let error as WormholeError where error.isOfOneName {
        return nil
      }
    }
  }

  /// Returns the named subscribers; see the form without `async`.
  public func subscribers() async throws -> [LogSubscriber] {
    try await Blocking.run { try subscribers() }
  }

  /// Forgets the position of a named subscriber: if it subscribes again, it counts as new. A
  /// process that reads under the name gets `leaseLost`.
  ///
  /// - Returns: whether it was known.
  /// - Throws: `WormholeError`: as removing a value.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func forget(subscriber: String) throws -> Bool {
    try LogCursor.value(subscriber, of: plain).remove()
  }

  /// Forgets a subscriber; see the form without `async`.
  @discardableResult
  public func forget(subscriber: String) async throws -> Bool {
    try await LogCursor.value(subscriber, of: plain).remove()
  }
}
