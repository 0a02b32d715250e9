package import WormholeSystem

package struct DirectoryEngine: ContainerEngine {
  package let root: ContainerRoot

  package var isDirectory: Bool { true }

  package func limited(_ limit: CallLimit) -> any ContainerEngine { self }

  package func localDirectory() -> String { root.path }

  package func identifiers(of kind: NameKind, _ faults: inout NameFaults) throws -> [String] {
    try SharedContainer.names(of: kind, in: root, &faults).compactMap {
      try SharedContainer.identifier(of: $0.name, kind, in: root, &faults)
    }
  }

  package func value(
    _ identifier: String, _ kind: NameKind, in container: SharedContainer
  ) -> any ValueStore {
    ValueFile(container: container, identifier: identifier, kind: kind)
  }

  package func change<Result: Sendable>(
    _ update: ValuesUpdate<Result>
  ) -> sending any Waiting<Result> { TransactionWork(update).change() }

  package func presence(
    _ name: String, _ kind: NameKind, in container: SharedContainer
  ) -> any PresenceStore { PresenceDirectory(container: container, name: name, kind: kind) }

  package func watchOwnPresenceNames(
    _ signal: @escaping @Sendable () -> Void
  ) throws -> any Cancelling {
    try PresenceDirectory.watchNames(of: .ownPresence, in: root, signal)
  }

  package func posts(_ name: String) -> any PostStore { PostFile(root: root, name: name) }

  package func queue(_ queue: PlainQueue) -> any QueueStore { DirectoryQueue(queue: queue) }

  package func attachments(of queue: PlainQueue) -> any AttachmentStore {
    DirectoryAttachments(queue: queue)
  }

  package func log(_ name: String, in container: SharedContainer) -> any LogStore {
    DirectoryLog(directory: NamedDirectory(root: root, kind: .log, identifier: name))
  }
}
