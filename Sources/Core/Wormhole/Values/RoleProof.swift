import WormholePropertyLists
package import WormholeSystem

/// The proof that an exclusive role still belongs to one entering, checked in the same step as the
/// change that it guards.
///
/// In a directory the role's value takes part in the change but is only read, so a process that
/// takes the role over ends the change before it acts, or enters after it (see `Transaction`).
/// Another engine checks its own condition.
package struct RoleProof: Sendable {
  /// The value that names the holder of the role; nil on another engine.
  package let value: PlainValue?
  package let number: UInt64
  /// The condition that another engine checks; nil in a directory.
  package let condition: (any EngineCondition)?
  package let location: String
  /// The error of a late change.
  package let lost: WormholeError

  /// The key of the number in the role's value.
  package static let key = "fence"

  package init(
    value: PlainValue? = nil, number: UInt64, condition: (any EngineCondition)? = nil,
    location: String,
    lost: WormholeError
  ) {
    self.value = value
    self.number = number
    self.condition = condition
    self.location = location
    self.lost = lost
  }

  /// Returns the next holder's number, larger than every earlier one: the milliseconds since 1970,
  /// because a sweep or a program may have removed the last one; or the last plus one.
  static func next(after snapshot: PlainSnapshot) -> UInt64 {
    let now = UInt64(clamping: realTime().millisecondsSince1970)
    // `try?`, because damaged content has no number, so no process can have the role through it.
    let last = (try? number(in: snapshot)) ?? 0
    return max(now, last &+ 1)
  }

  /// Returns the number in the content of a role's value; 0 if it has none.
  package static func number(in snapshot: PlainSnapshot) throws -> UInt64 {
    try snapshot.propertyList()?[key]?.uint64Value ?? 0
  }

  /// Checks the content of the role's value, under its lease.
  ///
  /// - Throws: `lost`, so that the change does not begin again.
  package func check(_ snapshot: PlainSnapshot) throws {
    let isHeld = try number > 0 && Self.number(in: snapshot) == number
    guard isHeld || LeaseFault.claimingLate.isActive else {
      throw BodyError(cause: lost)
    }
  }

  /// Runs a closure under the lease of the role's value, if it has the number; begins again after a
  /// lost lease, and waits like a change.
  ///
  /// - Parameter body: Publishes through the lease, so that nothing is published after a takeover.
  package func whileHeld<Result: Sendable>(
    in container: SharedContainer, _ body: @escaping @Sendable (Lease) throws -> Result
  ) throws -> Result {
    requireContainer(container)
    guard let file = value?.store.file else {
      preconditionFailure("a role in a directory has a value")
    }
    return try Change(file.directory, protecting: file.name, .init()) { lease, _ in
      try check(file.snapshot(limits: .standard))
      return try body(lease)
    }.run()
  }

  /// - Parameter other: The container of the change.
  func requireContainer(_ other: SharedContainer) {
    precondition(
      location == other.location, "the role \(lost.path) is not in the container \(other.location)")
  }
}

extension Value {
  /// Returns a change of this value that is published only under a role; see `update`.
  package func change<Result: Sendable>(
    under role: RoleProof, _ terms: ChangeTerms,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) -> sending any Waiting<Result> {
    var terms = terms
    terms.peer = peer
    let (name, path) = (identifier, path)
    return ValuesUpdate(container, [plain], terms: terms, under: role) { lists in
      var content: Content?
      do {
        content = try lists[name]?.decode()
      } catch let error as DecodingError {
        throw WormholeError.ofAnotherShape(path, Content.self, error)
      }
      let result = try body(&content)
      lists[name] = try content.map { try PropertyListValue(encoding: $0) }
      return result
    }.change()
  }
}
