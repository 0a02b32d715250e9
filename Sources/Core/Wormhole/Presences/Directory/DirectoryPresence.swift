import WormholeSystem

/// The presence of one name in a directory.
package struct DirectoryPresence: PresenceStore {
  let container: SharedContainer
  let title: PresenceTitle
  package let place: PresenceDirectory

  package init(container: SharedContainer, name: String, kind: NameKind) {
    self.container = container
    title = PresenceTitle(name: name, kind: kind)
    place = PresenceDirectory(
      directory: NamedDirectory(root: container.root, kind: kind, identifier: name))
  }

  package var path: String { place.directory.path }
  package var host: String? { nil }

  package func look() throws -> PresenceLook { try look(movesAside: true) }

  func look(movesAside: Bool) throws -> PresenceLook {
    try place.look(movesAside: movesAside) ?? PresenceLook()
  }

  package func last(after look: PresenceLook) throws -> PresenceStatus {
    if let record = try place.lastRecord() {
      return .gone(last: PresenceMember(record, state: .gone), ended: record.ended)
    }
    // Only if it cannot be moved aside.
    if let last = look.dead.last { return .gone(last: last, ended: nil) }
    return try place.hasLast() ? .gone(last: nil, ended: nil) : .neverSeen
  }

  package func enter(_ record: PresenceRecord, tidies: Bool) throws -> any PresenceHold {
    if tidies { try place.sweep() }
    return DirectoryRegistration(self, record, try place.post(record))
  }

  package func exclusiveEntry(
    _ record: PresenceRecord, _ overtaking: Presence.Overtaking,
    until deadline: ContinuousClock.Instant
  ) -> any Waiting<any PresenceHold> {
    DirectoryEntry(self, record, overtaking: overtaking, until: deadline)
  }

  package func sight() -> any PresenceSight { DirectorySight(self) }

  static func watchNames(
    of kind: NameKind, in root: ContainerRoot, _ signal: @escaping @Sendable () -> Void
  ) throws -> Watch {
    let path = root.path + "/" + kind.path
    return try reporting("watch the names of presences", path: path) {
      _ = try root.handle()
      return root.watch(path, below: kind.parents(in: root).dropLast()) { _ in signal() }
    }
  }
}

// For the directory's other primitives, whose files name registrations, and for inspections.
extension Presence {
  /// The presence in the directory of the container that is on this machine.
  package var inDirectory: DirectoryPresence {
    DirectoryPresence(container: container, name: name, kind: kind)
  }

  /// The directory of registrations.
  package var place: PresenceDirectory { inDirectory.place }

  /// The value that names the registration with the exclusive role.
  package var role: Value { inDirectory.role }

  /// Returns the id of the registration with the role, or nil if there is none.
  package func roleID() throws -> String? { try inDirectory.roleID() }
}
