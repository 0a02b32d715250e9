public import Wormhole
import WormholePropertyLists

/// A whole suite as one value of the program: a property of the type for each key.
extension GroupDefaults {
  /// Returns the suite as a type of the program, or nil if nothing was ever stored.
  ///
  /// - Throws: `GroupDefaultsError.wrongType` for keys that the type lacks or has otherwise; as
  ///   `read(forKey:)`.
  public func readSuite<Content: Decodable>(
    as type: Content.Type = Content.self
  ) throws -> Content? {
    try Self.content(suite().contents())
  }

  /// Changes several keys in one step, as properties of a type of the program. Keys that the type does
  /// not know keep their values.
  ///
  /// - Parameters:
  ///   - type: A type that is encoded as a dictionary.
  ///   - durability: What the change survives.
  ///   - deadline: The latest instant to wait for other changes of the suite.
  ///   - body: Receives the suite, nil if nothing is stored, and leaves the new one there; nil removes
  ///     the keys of the type. It runs again if the lease was lost.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or as `readSuite` and `write`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func updateSuite<Content: Codable & Sendable, Result: Sendable>(
    as type: Content.Type = Content.self, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) throws -> Result {
    try edit(.init(durability, until: deadline), Self.edited(body))
  }

  /// Changes several keys in one step; see the form without `async`.
  public func updateSuite<Content: Codable & Sendable, Result: Sendable>(
    as type: Content.Type = Content.self, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) async throws -> Result {
    try await edit(.init(durability, until: deadline), Self.edited(body))
  }

  private static func edited<Content: Codable & Sendable, Result>(
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) -> @Sendable (inout Suite.Contents) throws -> Result {
    { contents in
      var content: Content? = try Self.content(contents)
      let known = try keys(of: content)
      let result = try body(&content)
      for key in known.keys { contents[key] = nil }
      contents.merge(try keys(of: content)) { $1 }
      return result
    }
  }

  private static func content<Content: Decodable>(_ contents: Suite.Contents) throws -> Content? {
    guard !contents.isEmpty else { return nil }
    do {
      return try PropertyListValue.dictionary(contents).decode(as: Content.self)
    } catch {
      throw GroupDefaultsError(
        .wrongType, "read the suite as \(Content.self)", reason: "it has another shape: \(error)",
        remedy: "make the properties of missing keys optional")
    }
  }

  private static func keys(of content: (some Encodable)?) throws -> Suite.Contents {
    guard let content else { return [:] }
    guard let keys = try PropertyListValue(encoding: content).dictionaryValue else {
      throw GroupDefaultsError(
        .unsupportedValue, "write the suite as \(type(of: content))",
        reason: "it is not encoded as a dictionary", remedy: "encode it with keys")
    }
    return keys
  }
}
