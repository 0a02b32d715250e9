import WormholeSystem

package struct DirectoryEngine: ContainerEngine {
  package let root: ContainerRoot

  package var host: String? { nil }

  package func limited(_ limit: CallLimit) -> (any ContainerEngine)? { nil }

  package func localDirectory() -> String { root.path }

  package func identifiers(of kind: NameKind, _ faults: inout NameFaults) throws -> [String] {
    try SharedContainer.names(of: kind, in: root, &faults).compactMap {
      try SharedContainer.identifier(of: $0.name, kind, in: root, &faults)
    }
  }
}
