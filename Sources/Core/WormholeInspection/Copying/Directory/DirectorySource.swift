import Wormhole
import WormholePropertyLists
import WormholeSystem

/// Reads a directory as keys: one that nobody changes, a picture or an unpacked backup.
struct DirectorySource: CopySource {
  let container: SharedContainer
  let root: ContainerRoot

  func read(_ body: (CopiedKey) throws -> Void) throws -> Bool {
    for kind in [NameKind.value, .ownValue] {
      for name in try names(kind) { try readValue(kind, name, .value, body) }
    }
    for name in try names(.notification) {
      if let bell = try Bell(root: root, name: name).sound().marks.map(\.text).min() {
        try body(CopiedKey(.bell, .notification, name, Array(bell.utf8)))
      }
      try readValue(.notification, name, .state, body)
    }
    for (primitive, letter) in [
      (NameKind.Primitive.presence, CopiedKey.Letter.presence), (.consumer, .consumer),
    ] {
      for kind in [NameKind(primitive), NameKind(primitive, isOwn: true)] {
        for name in try names(kind) { try readLast(kind, name, letter, body) }
      }
    }
    for kind in [NameKind.queue, .ownQueue] {
      for name in try names(kind) {
        let queue = Queue(container: container, name: name, kind: kind)
        guard let place = try queue.open() else { continue }
        try QueueKeys(place: place).read { try body(CopiedKey(.queue, kind, name, part: $0, $1)) }
      }
    }
    return true
  }

  private func names(_ kind: NameKind) throws -> [String] {
    try container.identifiers(of: kind).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private func readValue(
    _ kind: NameKind, _ name: String, _ letter: CopiedKey.Letter, _ body: (CopiedKey) throws -> Void
  ) throws {
    let value = Value(container: container, identifier: name, kind: kind)
    guard let bytes = try value.snapshot().storedBytes() else { return }
    try body(CopiedKey(letter, kind, name, stamp(of: bytes) + bytes))
  }

  private func stamp(of bytes: [UInt8]) -> [UInt8] {
    [UInt64](0...1).flatMap { seed in
      var hash = XXH64(seed: seed)
      bytes.withUnsafeBytes { hash.update($0) }
      return withUnsafeBytes(of: hash.value.bigEndian) { Array($0) }
    }
  }

  /// Who was present last: those who are now end with their processes.
  private func readLast(
    _ kind: NameKind, _ name: String, _ letter: CopiedKey.Letter, _ body: (CopiedKey) throws -> Void
  ) throws {
    let directory = NamedDirectory(root: root, kind: kind, identifier: name)
    let found = try directory.look { place in
      try ifPresent(
        FileDescriptor.readBeneath(
          PresenceDirectory.last, at: place.rawValue, maximumBytes: Presence.maximumBytes
        ) { _ in true })
    }
    guard let bytes = found ?? nil else { return }
    try body(CopiedKey(letter, kind, name, part: "last", bytes))
  }
}
