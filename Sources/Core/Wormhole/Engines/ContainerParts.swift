import WormholeSystem

/// The description of a container's directories of names: the tables of all primitives.
///
/// Each container has one, so that a test can plant a part and check which readers know it.
package struct ContainerParts: Sendable {
  private var tables: [NameKind.Primitive: [ContainerPart]]

  package static let standard = Self(tables: [
    .value: ValueFile.parts, .notification: PostFile.parts, .presence: PresenceDirectory.parts,
    .consumer: PresenceDirectory.parts, .queue: QueueDirectory.parts, .log: LogDirectory.parts,
  ])

  package subscript(_ primitive: NameKind.Primitive) -> [ContainerPart] {
    get { tables[primitive, default: []] }
    set { tables[primitive] = newValue }
  }

  /// Returns the part that an entry belongs to; nil for a foreign one.
  ///
  /// - Parameter path: Its path below the directory of the name.
  package func part(
    at path: some Sequence<String>, of primitive: NameKind.Primitive
  ) -> ContainerPart? {
    var found: ContainerPart?
    var parts = self[primitive]
    for name in path {
      guard let next = parts.first(where: { $0.isNamed(FileName(name)) }) else { return nil }
      (found, parts) = (next, next.parts ?? [])
    }
    return found
  }
}
