public import AppGroup
import FoundationEssentials
public import PropertyLists

extension GroupDefaults {
  /// The value of a key in the first domain of the search list that has one; nil if none has.
  ///
  /// - Throws: `GroupDefaultsError.damaged` for a suite that cannot be read, or `AppGroupError`.
  /// - Complexity: one system call for each suite, unless somebody wrote since the last read.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(forKey key: String) throws -> PropertyListValue? {
    try find(key) { throw $0 }
  }

  /// The value of a key as a type of the program's own; nil if there is none.
  ///
  /// - Throws: as `read(forKey:)`; `GroupDefaultsError.wrongType` for a value of another shape.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read<Content: Decodable>(
    _ type: Content.Type = Content.self, forKey key: String
  ) throws -> Content? {
    try read(forKey: key).map { try Self.decode(type, $0, forKey: key) }
  }

  /// All that is stored in the suite itself; nil if it was never written, or was removed.
  ///
  /// - Throws: as `read(forKey:)`.
  public func stored() throws -> [String: PropertyListValue]? {
    let suite = try suite()
    let contents = try suite.contents()
    guard contents.isEmpty else { return contents }
    return try suite.value.version() == nil ? nil : contents
  }

  /// Stores a value; nil removes it.
  ///
  /// - Parameters:
  ///   - value: the new value.
  ///   - key: any string.
  ///   - durability: what the write survives.
  ///   - deadline: until when to wait for another process's change of the same suite; by default
  ///     `Value.standardWait` from now.
  /// - Throws: `GroupDefaultsError`: `unsupportedValue`, or `damaged`, for what cannot be read is not
  ///   written over; `AppGroupError`, as `Value.update`. Nothing has changed then.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func write(
    _ value: PropertyListValue?, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try suite().edit(.init(durability, deadline)) { $0[key] = value }
  }

  /// Stores a value of a type of the program's own; see the form for property lists.
  ///
  /// - Throws: also what encoding the value throws.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func write<Content: Encodable>(
    _ value: Content, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    let encoded = try Self.encode(value, forKey: key)
    try write(encoded, forKey: key, durability: durability, until: deadline)
  }

  /// Removes a value from the suite.
  ///
  /// - Returns: whether there was one.
  /// - Throws: as `write`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func remove(
    forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Bool {
    try suite().edit(.init(durability, deadline)) {
      $0.removeValue(forKey: key) != nil
    }
  }

  /// Changes the stored value of a key, and nobody else's change comes between.
  ///
  /// - Parameters:
  ///   - key: any string.
  ///   - durability: what the write survives.
  ///   - deadline: until when to wait for other changes of the same suite.
  ///   - body: gets the value, nil if the suite has none, and leaves the new one there; nil removes
  ///     it. Runs **again**, with the latest value, if this process was stopped in the middle and
  ///     overtaken: it should have no other effects, and must not change the same suite.
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws, or as `write`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) throws -> Result {
    try suite().edit(.init(durability, deadline)) { try body(&$0[key]) }
  }

  /// Changes the stored value of a key as a type of the program's own; see the form for property
  /// lists.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Content: Codable & Sendable, Result: Sendable>(
    _ type: Content.Type, forKey key: String, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) throws -> Result {
    try suite().edit(
      .init(durability, deadline), Self.edited(key, body))
  }

  /// Changes several keys of the suite in one step; see the form for one key.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) throws -> Result {
    try suite().edit(.init(durability, deadline), body)
  }

  /// Stores a value if the suite has the one that is expected, and nobody else's change comes
  /// between.
  ///
  /// - Parameters:
  ///   - expected: what must be there; nil for nothing.
  ///   - new: what is to be there; nil removes it.
  /// - Returns: what was there; the change was made if and only if it is `expected`.
  /// - Throws: as `write`.
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

  /// Moves the suite's file into the container's `quarantine/`: for one that is damaged, and whose
  /// content somebody may miss. The suite is empty afterwards.
  ///
  /// - Returns: where it is now; nil when there was nothing.
  /// - Throws: `AppGroupError`, as `Value.quarantine`.
  @discardableResult
  public func quarantine(until deadline: ContinuousClock.Instant? = nil) throws -> String? {
    try suite().value.quarantine(until: deadline)
  }

  func write(object: Any?, forKey key: String) throws {
    var object = object
    // A generic property wrapper of an optional type hands in an optional in an optional.
    while let present = object, let optional = present as? any OptionalObject {
      object = optional.wrapped
    }
    try write(object.map { try Conversions.stored($0, forKey: key) }, forKey: key)
  }
}

extension GroupDefaults {
  static func decode<Content: Decodable>(
    _ type: Content.Type, _ value: PropertyListValue, forKey key: String
  ) throws -> Content {
    do {
      return try PropertyListCoding.decode(type, from: value.binaryData())
    } catch {
      throw GroupDefaultsError(
        .wrongType, "read \"\(key)\" as \(type)", reason: "it has another shape: \(error)",
        remedy: "whoever wrote it means something else by this key")
    }
  }

  static func encode<Content: Encodable>(
    _ value: Content, forKey key: String
  ) throws -> PropertyListValue {
    do {
      return try PropertyListValue(data: PropertyListCoding.encode(value))
    } catch let error as PropertyListError {
      throw GroupDefaultsError.unsupported(key, error)
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
