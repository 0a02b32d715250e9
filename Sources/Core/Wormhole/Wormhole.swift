// The declarations of other modules that a client of containers needs.
@_exported public import WormholePropertyLists

@_exported public import enum WormholeSystem.ChangeDetection

extension SharedContainer {
  /// The names of the container's own entries; all others are the user's.
  package static let ownEntries = Set(
    [ContainerFormat.fileName, ContainerFormat.mailboxes, Quarantine.directory, NameKind.own]
      + NameKind.users.map(\.path))
}
