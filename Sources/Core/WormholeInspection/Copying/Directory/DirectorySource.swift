import Wormhole
import WormholeSystem

/// Reads a directory as keys: a picture or an unpacked backup, which no process changes.
struct DirectorySource: CopySource {
  let container: SharedContainer
  let root: ContainerRoot

  func read(_ body: (CopiedKey) throws -> Void) throws -> Bool {
    for (kind, part) in root.meanings {
      for name in try names(kind) {
        guard let bytes = try part.meaning(of: name, kind, in: container).bytes else { continue }
        try body(CopiedKey(of: part, kind: kind, name: name, bytes))
      }
    }
    for kind in [NameKind.queue, .ownQueue] {
      for name in try names(kind) {
        let queue = Queue(container: container, name: name, kind: kind)
        guard let place = try queue.open() else { continue }
        try QueueKeys(place: place).read {
          try body(CopiedKey(queue: name, isOwn: kind.isOwn, part: $0, value: $1))
        }
      }
    }
    return true
  }

  private func names(_ kind: NameKind) throws -> [String] {
    try container.identifiers(of: kind).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}
