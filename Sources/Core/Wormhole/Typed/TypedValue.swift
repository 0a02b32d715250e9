import FoundationEssentials
import WormholePropertyLists

/// A value whose content has one type of the program, with the promises of `Value`.
///
/// The file holds exactly the content as a property list, so every other program that knows the
/// identifier takes part.
///
/// ```swift
/// let seats = container.value("seats", as: [Int].self)
/// try seats.update { $0 = ($0 ?? []) + [12] }
/// ```
public struct TypedValue<Content: Codable & Sendable>: Sendable {
  /// The value itself, for its path, its version and its snapshots.
  public let value: Value
  /// Receives the version of each publication just before it becomes visible.
  private let willPublish: @Sendable (Stamp) -> Void

  package init(_ value: Value, willPublish: @escaping @Sendable (Stamp) -> Void = { _ in }) {
    self.value = value
    self.willPublish = willPublish
  }

  /// Returns the current content; nil only if it was never written or was removed.
  ///
  /// - Throws: `AppGroupError.Code.damaged` for bytes that are not a `Content`, otherwise as
  ///   `Value.read`.
  /// - Complexity: As `Value.read`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read() throws -> Content? { try value.snapshot().decode() }

  /// Returns the current content; see the form without `async`.
  public func read() async throws -> Content? { try await value.snapshot().decode() }

  /// Replaces the content, whatever the old one is.
  ///
  /// - Parameters:
  ///   - content: Any `Codable` value that a property list can hold, even a string or a number.
  ///   - durability: The failures that the write survives.
  ///   - lifetime: The time from now for which it is the content; nil means forever. See
  ///     <doc:ExpiryOfValues>.
  ///   - deadline: The latest instant to wait for the lease; by default `Value.standardWait` from now.
  /// - Throws: The error of encoding, or `AppGroupError`, as `Value.replace`.
  /// - Complexity: As `Value.replace`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func replace(
    with content: Content, durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try value.replace(
      withBytes: Self.encode(content), durability: durability, expiresAfter: lifetime,
      until: deadline, willPublish: willPublish)
  }

  /// Replaces the content; see the form without `async`.
  public func replace(
    with content: Content, durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    let bytes = try Self.encode(content)
    try await value.replace(
      withBytes: bytes, durability: durability, expiresAfter: lifetime, until: deadline,
      willPublish: willPublish)
  }

  /// Reads the content, changes it and publishes the result atomically: no other change comes
  /// between.
  ///
  /// - Parameters:
  ///   - durability: The failures that the write survives.
  ///   - deadline: The latest instant to wait for the lease; by default `Value.standardWait` from now.
  ///   - body: Receives the content, nil if there is none, and leaves the new one there; nil removes
  ///     it. It runs **again**, with the latest content, if this process was stopped in the middle and
  ///     its lease was taken over. So it should have no other effects.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, the error of encoding, or `AppGroupError`, as `Value.update`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) throws -> Result {
    try value.edit(.init(durability, until: deadline, willPublish: willPublish), Self.edited(body))
  }

  /// Reads, changes and publishes; see the form without `async`. `body` runs on a thread that may
  /// block.
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) async throws -> Result {
    try await value.edit(
      .init(durability, until: deadline, willPublish: willPublish), Self.edited(body))
  }

  private static func edited<Result: Sendable>(
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) -> @Sendable (ValueSnapshot) throws -> (Edit, Result) {
    { snapshot in
      var content = try snapshot.decode(Content.self)
      let wasAbsent = content == nil
      let result = try body(&content)
      guard let content else { return (wasAbsent ? .keep : .remove, result) }
      let bytes = try encode(content)
      let isSame = try snapshot.bytes() == bytes
      return (isSame ? .keep : .replace(bytes), result)
    }
  }

  private static func encode(_ content: Content) throws -> [UInt8] {
    Array(try PropertyListCoding.encode(content))
  }
}

extension SharedContainer {
  /// Returns the value with an identifier as one type of the program. Touches no file.
  public func value<Content: Codable & Sendable>(
    _ identifier: String, as type: Content.Type
  ) -> TypedValue<Content> {
    TypedValue(value(identifier))
  }
}
