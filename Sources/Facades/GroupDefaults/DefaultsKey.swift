public import Wormhole
import WormholePropertyLists

/// A key with the type of its value, and its default.
///
/// ```swift
/// let defaults = GroupDefaults(in: container)
/// let volume = DefaultsKey("volume", default: 5)
/// defaults[volume] += 1
/// ```
public struct DefaultsKey<Content: Codable & Sendable>: Sendable {
  /// The key in the suite.
  public let name: String
  /// The default: the key's value until one is stored.
  public let standard: Content

  /// Makes a key; touches no file.
  public init(_ name: String, default standard: Content) {
    self.name = name
    self.standard = standard
  }
}

extension GroupDefaults {
  /// A key's value. Like the methods of `UserDefaults` it cannot throw: errors are reported to
  /// `onError`; reading then gives the key's default, and setting changes nothing.
  ///
  /// `defaults[key] += 1` reads and then writes, so another process may write in between; `update`
  /// is one step.
  ///
  /// - Complexity: As `read` and `write`.
  public subscript<Content>(key: DefaultsKey<Content>) -> Content {
    get { reporting(key.standard) { try read(forKey: key.name) ?? key.standard } }
    set { reporting(()) { try write(newValue, forKey: key.name) } }
  }

  /// Changes a key's value in one step: no other change comes between.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - durability: What the change survives.
  ///   - deadline: The latest instant to wait for other changes of the suite.
  ///   - body: Receives the value, or the default, and leaves the new one there. It runs again if the
  ///     lease was lost.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or as `update(forKey:)`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Content, Result: Sendable>(
    _ key: DefaultsKey<Content>, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content) throws -> Result
  ) throws -> Result {
    try update(
      Content.self, forKey: key.name, durability: durability, until: deadline,
      Self.edited(key, body))
  }

  /// Changes a key's value in one step; see the form without `async`.
  public func update<Content, Result: Sendable>(
    _ key: DefaultsKey<Content>, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content) throws -> Result
  ) async throws -> Result {
    try await update(
      Content.self, forKey: key.name, durability: durability, until: deadline,
      Self.edited(key, body))
  }

  private static func edited<Content, Result>(
    _ key: DefaultsKey<Content>, _ body: @escaping @Sendable (inout Content) throws -> Result
  ) -> @Sendable (inout Content?) throws -> Result {
    { stored in
      var content = stored ?? key.standard
      let result = try body(&content)
      stored = content
      return result
    }
  }
}

/// A property that is stored in defaults, and shared by every process that names the same key.
///
/// ```swift
/// struct Player {
///   @Default("volume", in: .standard) var volume = 5
/// }
/// ```
///
/// Errors are reported to the defaults' `onError`.
@propertyWrapper
public struct Default<Content: Codable & Sendable>: Sendable {
  /// The defaults in which it is stored.
  public let defaults: GroupDefaults
  /// The key under which it is stored.
  public let key: DefaultsKey<Content>

  /// Makes a property whose initial value is the default of its key.
  public init(wrappedValue: Content, _ name: String, in defaults: GroupDefaults) {
    key = DefaultsKey(name, default: wrappedValue)
    self.defaults = defaults
  }

  /// The stored value.
  public var wrappedValue: Content {
    get { defaults[key] }
    nonmutating set { defaults[key] = newValue }
  }

  /// The wrapper, for its key and its defaults.
  public var projectedValue: Default<Content> { self }
}
