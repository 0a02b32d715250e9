/// What the package itself keeps in a container, under names of its own: see `NameKind`.
///
/// The modules above this one keep here what their users have no name for: the defaults of a group,
/// who is reached as a peer. No identifier of a user leads here, whatever text it is.
package struct OwnNames: Sendable {
  let container: SharedContainer

  /// The value of a name of the package; nothing is touched before it is read or written.
  package func value(_ name: String) -> Value {
    Value(container: container, identifier: name, kind: .ownValue)
  }

  /// The queue of a name of the package; nothing is touched before somebody sends or consumes.
  package func queue(_ name: String) -> Queue {
    Queue(container: container, name: name, kind: .ownQueue)
  }

  /// The presence under a name of the package; nothing is touched before somebody enters or observes.
  package func presence(_ name: String) -> Presence {
    Presence(container: container, name: name, kind: .ownPresence)
  }

  /// The names of the values, in no order; as `SharedContainer.valueIdentifiers`.
  package func valueIdentifiers() throws -> [String] { try container.identifiers(of: .ownValue) }

  /// The names of the queues, in no order; as `SharedContainer.queueNames`.
  package func queueNames() throws -> [String] { try container.identifiers(of: .ownQueue) }

  /// The names of the presences, in no order; as `SharedContainer.presenceNames`.
  package func presenceNames() throws -> [String] {
    try container.identifiers(of: .ownPresence)
  }
}

extension SharedContainer {
  /// What the package itself keeps here, apart from what its users have named.
  package var own: OwnNames { OwnNames(container: self) }
}
