/// The package's own data in a container, under its own names: see `NameKind`.
///
/// The modules above this one keep data here that users do not name: the defaults of a group, the
/// pairing of a peer. No identifier of a user leads here, whatever its text is.
package struct OwnNames: Sendable {
  package let container: SharedContainer

  package func valueIdentifiers() throws -> [String] { try container.identifiers(of: .ownValue) }

  package func queueNames() throws -> [String] { try container.identifiers(of: .ownQueue) }

  package func presenceNames() throws -> [String] {
    try container.identifiers(of: .ownPresence)
  }
}

extension SharedContainer {
  /// The package's own data here, apart from the names of its users.
  package var own: OwnNames { OwnNames(container: self) }
}
