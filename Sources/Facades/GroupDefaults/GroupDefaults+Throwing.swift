import Synchronization
public import Wormhole
import WormholeInspection
public import WormholePropertyLists

extension GroupDefaults {
  /// Returns the value of a key in the first domain of the search list that has one, or nil.
  ///
  /// - Throws: `WormholeError`: `damaged` for a suite that cannot be read, or as opening it.
  /// - Complexity: One system call per suite, unless a process has written to it since the last
  ///   read.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(forKey key: String) throws -> PropertyListValue? {
    try find(key) { throw $0 }
  }

  /// Returns a key's value as a type of the program, or nil if there is none.
  ///
  /// - Throws: As `read(forKey:)`; `WormholeError.wrongType` for a value of another shape.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read<Content: Decodable>(
    _ type: Content.Type = Content.self, forKey key: String
  ) throws -> Content? {
    try read(forKey: key).map { try Self.decode(type, $0, forKey: key) }
  }

  /// Returns the suite's own content, or nil if it was never written or was removed.
  ///
  /// - Throws: As `read(forKey:)`.
  public func storedValues() throws -> [String: PropertyListValue]? {
    let suite = try suite()
    let contents = try suite.contents()
    guard contents.isEmpty else { return contents }
    return try suite.value.version() == nil ? nil : contents
  }

  /// Stores a value; nil removes it.
  ///
  /// - Parameters:
  ///   - value: The new value.
  ///   - key: Any string.
  ///   - durability: What the write survives.
  ///   - deadline: The latest instant to wait for another process's change of the same suite; by
  ///     default `SharedContainer.standardWait` from now.
  /// - Throws: `WormholeError`: `unsupportedValue`; `damaged`, because a file that cannot be read is
  ///   not overwritten; or as `Value.update`. If it throws, nothing has changed.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func write(
    _ value: PropertyListValue?, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try edit(.init(durability, until: deadline), of: key) { $0[key] = value }
  }

  /// Stores a value of a type of the program; see the form for property lists.
  ///
  /// - Throws: Also the error of encoding the value.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func write<Content: Encodable>(
    _ value: Content, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    let encoded = try Self.encode(value, forKey: key)
    try edit(.init(durability, until: deadline), of: key) { $0[key] = encoded }
  }

  /// Removes a value from the suite.
  ///
  /// - Returns: Whether there was one.
  /// - Throws: As `write`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func remove(
    forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try edit(.init(durability, until: deadline), of: key) {
      $0.removeValue(forKey: key) != nil
    }
  }

  /// Changes a key's stored value atomically: no other change comes between reading and writing.
  ///
  /// - Parameters:
  ///   - key: Any string.
  ///   - durability: What the write survives.
  ///   - deadline: The latest instant to wait for other changes of the same suite.
  ///   - body: Receives the value, nil if the suite has none, and leaves the new one there; nil
  ///     removes it. It runs **again**, with the latest value, if this process was stopped in the
  ///     middle and its lease was taken over. So it should have no other effects, and must not
  ///     change the same suite.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or as `write`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) throws -> Result {
    try edit(.init(durability, until: deadline), of: key) { try body(&$0[key]) }
  }

  /// Changes the stored value of a key as a type of the program; see the form for property lists.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Content: Codable & Sendable, Result: Sendable>(
    _ type: Content.Type, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) throws -> Result {
    try edit(.init(durability, until: deadline), of: key, Self.edited(key, body))
  }

  /// Changes several keys of the suite in one step; see the form for one key.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) throws -> Result {
    try edit(.init(durability, until: deadline), body)
  }

  /// Stores a value if the suite has the expected one, atomically: no other change comes between.
  ///
  /// - Parameters:
  ///   - expected: The value that must be stored now; nil for none.
  ///   - new: The new value; nil removes it.
  ///   - key: Any string.
  ///   - durability: What the write survives.
  ///   - deadline: The latest instant to wait for other changes of the same suite; by default 10
  ///     seconds from now.
  /// - Returns: The previous value. The change was made if and only if it equals `expected`.
  /// - Throws: As `write`.
  public func compareAndSet(
    _ expected: PropertyListValue?, _ new: PropertyListValue?, forKey key: String,
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil
  ) throws -> PropertyListValue? {
    try update(forKey: key, durability: durability, until: deadline) { value in
      let found = value
      if found == expected { value = new }
      return found
    }
  }

  /// Moves the suite's file into the container's `quarantine/`, if it is damaged and its content
  /// may still be needed. The suite is then empty, or has the version that the container keeps for
  /// a power loss.
  ///
  /// - Returns: The file's new path, or nil if there was none.
  /// - Throws: `WormholeError`, as `Value.quarantine`.
  @discardableResult
  public func quarantine(until deadline: ContinuousClock.Instant? = nil) throws -> String? {
    try suite().value.quarantine(until: deadline)
  }

  func write(object: Any?, forKey key: String) throws {
    var object = object
    // A generic property wrapper with an optional type passes an optional within an optional.
    while let present = object, let optional = present as? any OptionalObject {
      object = optional.wrapped
    }
    try write(object.map { try Conversions.stored($0, forKey: key) }, forKey: key)
  }

  /// Stores an object if the suite is then within limits.
  ///
  /// - Returns: Whether it was stored.
  package func write(
    object: Any, forKey key: String, within limits: SuiteLimits
  ) throws -> Bool {
    let value = try Conversions.stored(object, forKey: key)
    guard key.utf8.count <= limits.keyBytes else { return false }
    return try edit(of: key) { contents in
      let old = contents
      contents[key] = value
      let isWithin =
        try contents.count <= limits.keys
        && PropertyListValue.dictionary(contents).binaryBytes().count <= limits.bytes
      if !isWithin { contents = old }
      return isWithin
    }
  }

  /// Returns an object of the suite itself, without the rest of the search list.
  package func storedObject(forKey key: String) throws -> Any? {
    try suite().contents()[key]?.propertyListObject
  }

  /// Returns all objects of the suite itself.
  package func storedObjects() throws -> [String: Any] {
    try suite().contents().mapValues(\.propertyListObject)
  }
}

/// How much a suite may hold.
package struct SuiteLimits: Sendable {
  let keys: Int
  /// The longest key, in bytes of UTF-8.
  let keyBytes: Int
  /// The suite's size as a binary property list.
  let bytes: Int

  package init(keys: Int, keyBytes: Int, bytes: Int) {
    (self.keys, self.keyBytes, self.bytes) = (keys, keyBytes, bytes)
  }
}

// MARK: The forms for tasks

extension GroupDefaults {
  /// Returns a key's value in the search list; see the form without `async`. Blocks no thread of
  /// the cooperative pool, and reads the suite's file each time.
  public func read(forKey key: String) async throws -> PropertyListValue? {
    let (arguments, suites) = searched
    if let argument = arguments[key] { return argument }
    for suite in suites {
      if let value = try await suite.get().stateForTask().contents[key] { return value }
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
    try await edit(.init(durability, until: deadline), of: key) { $0[key] = value }
  }

  /// Stores a value of a type of the program; see the form without `async`.
  public func write<Content: Encodable>(
    _ value: Content, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    let encoded = try Self.encode(value, forKey: key)
    try await edit(.init(durability, until: deadline), of: key) { $0[key] = encoded }
  }

  /// Removes a value from the suite; see the form without `async`.
  @discardableResult
  public func remove(
    forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await edit(.init(durability, until: deadline), of: key) {
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
    try await edit(.init(durability, until: deadline), of: key) { try body(&$0[key]) }
  }

  /// Changes the stored value of a key as a type of the program; see the form without `async`.
  public func update<Content: Codable & Sendable, Result: Sendable>(
    _ type: Content.Type, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) async throws -> Result {
    try await edit(.init(durability, until: deadline), of: key, Self.edited(key, body))
  }

  /// Changes several keys of the suite in one step; see the form without `async`.
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) async throws -> Result {
    try await edit(.init(durability, until: deadline), body)
  }
}

extension GroupDefaults {
  static func decode<Content: Decodable>(
    _ type: Content.Type, _ value: PropertyListValue, forKey key: String
  ) throws -> Content {
    do {
      return try value.decode(as: type)
    } catch {
      throw WormholeError(
        .wrongType, "read \"\(key)\" as \(type)", reason: "it has another shape: \(error)",
        remedy: "its writer uses this key for another type")
    }
  }

  static func encode<Content: Encodable>(
    _ value: Content, forKey key: String
  ) throws -> PropertyListValue {
    do {
      return try PropertyListValue(encoding: value)
    } catch let error as PropertyListError {
      throw WormholeError.unsupported(key, error)
    }
  }

  static func edited<Content: Codable & Sendable, Result>(
    _ key: String, _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) -> @Sendable (inout Suite.Contents) throws -> Result {
    { contents in
      var content = try contents[key].map { try decode(Content.self, $0, forKey: key) }
      let result = try body(&content)
      contents[key] = try content.map { try encode($0, forKey: key) }
      return result
    }
  }
}
