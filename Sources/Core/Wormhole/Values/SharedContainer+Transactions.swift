public import WormholePropertyLists
import WormholeSystem

extension SharedContainer {
  /// Reads several values, changes them and publishes all changes in one step: every process sees
  /// all of them or none, and no other change comes between.
  ///
  /// The leases of all values are taken in one order, so two such updates never wait for each other.
  /// If this process is killed or stopped in the middle, the next process that changes one of the
  /// values finishes the update or undoes it; readers see the result even before that.
  ///
  /// - Parameters:
  ///   - identifiers: The values that `body` may read and change.
  ///   - durability: The failures that the changes survive.
  ///   - deadline: The latest instant to wait for the leases; by default `SharedContainer.standardWait` from
  ///     now.
  ///   - term: As in `Value.update`, for each lease from the moment when it is taken.
  ///   - repeatsAfterLoss: As in `Value.update`; the loss of one lease is enough.
  ///   - body: Receives the values that exist, and leaves the new ones there. A value that is then
  ///     missing is removed; an unchanged one is not published again. If the closure throws,
  ///     nothing changes.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or `WormholeError`: as `Value.update`;
  ///   `WormholeError.Code.unsupportedValue` for a value that is not among `identifiers`, and for
  ///   two identifiers that Swift considers equal although their bytes differ; `.inputOutput` on a
  ///   file system without hard links or permissions.
  /// - Complexity: About 35 system calls for each changed value, and 10 more. The content is
  ///   written before the change becomes visible. `.durable` adds five fsyncs for each value, and
  ///   two more.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    _ identifiers: [String], durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = SharedContainer.standardTerm,
    repeatsAfterLoss: Bool = true,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) throws -> Result {
    let terms = ChangeTerms(
      durability, until: deadline, term: term, repeatsAfterLoss: repeatsAfterLoss)
    return try ValuesUpdate(self, identifiers, terms: terms, body: body).change().run()
  }

  /// Reads, changes and publishes several values; see the form without `async`. `body` runs on a
  /// thread that may block.
  public func update<Result: Sendable>(
    _ identifiers: [String], durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = SharedContainer.standardTerm,
    repeatsAfterLoss: Bool = true,
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Result
  ) async throws -> Result {
    let terms = ChangeTerms(
      durability, until: deadline, term: term, repeatsAfterLoss: repeatsAfterLoss)
    let update = try ValuesUpdate(self, identifiers, terms: terms, body: body)
    return try await runSuspending { update.change() }
  }

  /// Returns several values as they were at one moment.
  ///
  /// - Returns: The values that existed.
  /// - Throws: As `Value.read`. `timedOut` if the values change so often that this process has to
  ///   wait for their leases, and does not get them within `SharedContainer.standardWait`.
  /// - Complexity: As reading each value, and one more call for each; again if one of them was
  ///   changed meanwhile.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(_ identifiers: [String]) throws -> [String: PropertyListValue] {
    try ValuesUpdate(self, identifiers, terms: .init(), onlyReads: true) { $0 }.change().run()
  }

  /// Returns several values as they were at one moment; see the form without `async`.
  public func read(_ identifiers: [String]) async throws -> [String: PropertyListValue] {
    try await Blocking.run { try self.read(identifiers) }
  }

  // Two names may be equal as dictionary keys but have two files: é, and e with an accent.
  fileprivate func distinct(_ identifiers: [String]) throws -> [PlainValue] {
    let values = Set(identifiers).map(value)
    guard
      values.count == identifiers.count
        || Set(identifiers.map { Array($0.utf8) }).count == values.count
    else {
      throw WormholeError(
        .unsupportedValue, "change several values", path: location,
        reason: "two of the identifiers are the same text in different bytes",
        remedy: "change the two values one after the other")
    }
    return values
  }
}

/// One update of several values: the decisions of its closure, on any engine.
package struct ValuesUpdate<Result: Sendable>: Sendable {
  typealias Body = @Sendable (inout [String: PropertyListValue]) throws -> Result

  package let container: SharedContainer
  /// In the order in which all processes take their leases.
  package let values: [PlainValue]
  package let terms: ChangeTerms
  /// The role under which it is published; nil for any process at any time.
  package let role: RoleProof?
  /// Whether its closure changes nothing.
  let onlyReads: Bool
  private let body: Body

  init(
    _ container: SharedContainer, _ identifiers: [String], terms: ChangeTerms,
    under role: RoleProof? = nil, onlyReads: Bool = false, body: @escaping Body
  ) throws {
    self.init(
      container, try container.distinct(identifiers), terms: terms, under: role,
      onlyReads: onlyReads, body: body)
  }

  /// - Parameter values: The values, all different.
  init(
    _ container: SharedContainer, _ values: [PlainValue], terms: ChangeTerms,
    under role: RoleProof?, onlyReads: Bool = false, body: @escaping Body
  ) {
    role?.requireContainer(container)
    self.container = container
    self.values = values.ordered { $0.store.file.relativePath < $1.store.file.relativePath }
    self.terms = terms
    self.role = role
    self.onlyReads = onlyReads
    self.body = body
  }

  func change() -> sending any Waiting<Result> {
    container.engine(as: (any ValueEngine).self).change(self)
  }

  private static func content(
    of values: [PlainValue], _ found: [PlainSnapshot]
  ) throws -> [String: PropertyListValue] {
    var content: [String: PropertyListValue] = [:]
    for (value, snapshot) in zip(values, found) {
      content[value.identifier] = try snapshot.propertyList()
    }
    return content
  }

  /// Calls the closure.
  ///
  /// - Returns: Its decision about each value, and its result.
  package func decide(_ found: [PlainSnapshot]) throws -> (edits: [Edit], result: Result) {
    let old = try Self.content(of: values, found)
    var new = old
    let result: Result
    do { result = try body(&new) } catch { throw BodyError(cause: error) }
    if let other = new.keys.first(where: { key in !values.contains { $0.identifier == key } }) {
      throw WormholeError(
        .unsupportedValue, "change several values", path: container.location,
        reason: "the closure has set \"\(other)\", which is not among the values to change",
        remedy: "name it among the identifiers")
    }
    let edits = try values.map { value in
      let content = new[value.identifier]
      guard content != old[value.identifier] else { return Edit.keep }
      return try content.map { .replace(try value.encode($0)) } ?? .remove
    }
    return (edits, result)
  }
}
