import Synchronization
public import Wormhole
public import WormholePropertyLists

extension GroupDefaults {
  /// Returns the value of a key in the search list; see the form without `async`. Blocks no thread
  /// of the cooperative pool, and reads the suite's file each time.
  public func read(forKey key: String) async throws -> PropertyListValue? {
    let (argument, added) = surroundings.withLock { ($0.arguments[key], $0.addedSuites) }
    if let argument { return argument }
    for suite in [try suite()] + added.map(\.suite) {
      if let value = try await suite.stateForTask().contents[key] { return value }
    }
    return Self.registered.withLock { $0[key] }
  }

  /// Returns the value of a key as a type of the program; see the form without `async`.
  public func read<Content: Decodable>(
    _ type: Content.Type = Content.self, forKey key: String
  ) async throws -> Content? {
    try await read(forKey: key).map { try Self.decode(type, $0, forKey: key) }
  }

  /// Stores a value; see the form without `async`. Cancelling the task ends the wait for other
  /// changes with `CancellationError`.
  public func write(
    _ value: PropertyListValue?, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await edit(.init(durability, until: deadline)) { $0[key] = value }
  }

  /// Stores a value of a type of the program; see the form without `async`.
  public func write<Content: Encodable>(
    _ value: Content, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    let encoded = try Self.encode(value, forKey: key)
    try await write(encoded, forKey: key, durability: durability, until: deadline)
  }

  /// Removes a value from the suite; see the form without `async`.
  @discardableResult
  public func remove(
    forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await edit(.init(durability, until: deadline)) {
      $0.removeValue(forKey: key) != nil
    }
  }

  /// Changes the stored value of a key; see the form without `async`. `body` runs on a thread that
  /// may block.
  public func update<Result: Sendable>(
    forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) async throws -> Result {
    try await edit(.init(durability, until: deadline)) { try body(&$0[key]) }
  }

  /// Changes the stored value of a key as a type of the program; see the form without `async`.
  public func update<Content: Codable & Sendable, Result: Sendable>(
    _ type: Content.Type, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) async throws -> Result {
    try await edit(.init(durability, until: deadline), Self.edited(key, body))
  }

  /// Changes several keys of the suite in one step; see the form without `async`.
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) async throws -> Result {
    try await edit(.init(durability, until: deadline), body)
  }
}
