package import Wormhole
import WormholeSystem

/// A key of a container on etcd by its parts: "own/q/<name>/e/<batch>". See the page EtcdKeys.
package struct ContainerKey: Sendable {
  package let letter: String
  package let isOwn: Bool
  package let name: String
  /// The parts after the name.
  package let rest: [String]

  /// Parses a key without the container's prefix and its slash.
  ///
  /// - Returns: Nil for a key that does not belong to a name.
  package init?(_ key: some Collection<UInt8>) {
    var parts = key.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
    isOwn = parts.first?.elementsEqual("own".utf8) == true
    if isOwn { parts = parts.dropFirst() }
    guard let letter = parts.popFirst(),
      let name = parts.popFirst().flatMap({ EncodedName.identifier(ofKey: $0) })
    else { return nil }
    self.letter = String(decoding: letter, as: UTF8.self)
    self.name = name
    rest = parts.map { String(decoding: $0, as: UTF8.self) }
  }
}

/// The parts of a queue's keys: `q/<name>/<part>/…`; see `ContainerKey`.
///
/// The letters of consumers, owners and entries follow each other, so one range has all three.
package enum QueueKeyPart: String, Sendable {
  /// The manifests of files whose entries wait, or are not stored yet.
  case waitingFiles = "a"
  case consumers = "c"
  case owners = "d"
  case entries = "e"
  case failures = "f"
  /// The newest entry with each key of a sender.
  case marks = "k"
  case outcomes = "o"
  case receipts = "r"
  case senders = "s"
  /// The content of files.
  case pieces = "t"
  /// The manifests of files whose entries are taken.
  case takenFiles = "u"
  /// Batches that could not be read, put aside.
  case foreign = "x"

  /// Returns what follows the queue's name in a key of this part.
  package func text(_ name: String = "") -> String { "\(rawValue)/\(name)" }

  package func bytes(_ name: String = "") -> [UInt8] { Array(text(name).utf8) }
}

/// A part of a container on its way to another place: its key on etcd, and the key's content.
///
/// The layout of keys serves for directories, too: each kind of place is read and written in this
/// form, so that no pair of places needs its own code.
package struct CopiedKey: Sendable {
  package enum Letter: String, Sendable {
    case value = "v"
    case post = "n"
    case state = "s"
    case presence = "p"
    case consumer = "c"
    case queue = "q"
    case log = "l"

    init(of part: ContainerPart, _ kind: NameKind) {
      switch (part.role, kind.primitive) {
      case (.post, _): self = .post
      case (.last, .presence): self = .presence
      case (.last, _): self = .consumer
      case (_, .notification): self = .state
      default: self = .value
      }
    }

    package var primitive: NameKind.Primitive {
      switch self {
      case .value: .value
      case .post, .state: .notification
      case .presence: .presence
      case .consumer: .consumer
      case .queue: .queue
      case .log: .log
      }
    }
  }

  package let letter: Letter
  package let isOwn: Bool
  package let name: String
  /// The part after the name, without a slash before it: "e/<batch>" of a queue.
  package let part: String
  package let value: [UInt8]

  /// The random bytes before the content of a value.
  package static let stampBytes = 16

  var kind: NameKind { NameKind(letter.primitive, isOwn: isOwn) }
}

extension CopiedKey {
  init(log: String, part: String, _ value: [UInt8]) {
    self.init(letter: .log, isOwn: false, name: log, part: part, value: value)
  }

  init(stateOfLog log: String, _ bytes: [UInt8]) {
    self.init(log: log, part: "", Self.stamp(of: bytes) + bytes)
  }

  /// The key for the meaning of a part of a name: see `ContainerPart.Copied`.
  init(of part: ContainerPart, kind: NameKind, name: String, _ bytes: [UInt8]) {
    let letter = Letter(of: part, kind)
    self.init(
      letter: letter, isOwn: kind.isOwn, name: name, part: part.role == .last ? Self.last : "",
      value: [.value, .state].contains(letter) ? Self.stamp(of: bytes) + bytes : bytes)
  }

  /// The part of a presence that outlives its processes.
  static let last = "last"

  private static func stamp(of bytes: [UInt8]) -> [UInt8] {
    [UInt64](0...1).flatMap { seed in
      var hash = XXH64(seed: seed)
      bytes.withUnsafeBytes { hash.update($0) }
      return withUnsafeBytes(of: hash.value.bigEndian) { Array($0) }
    }
  }

  /// As `ContainerKey`; nil also for a key that no container has.
  package init?(_ key: ArraySlice<UInt8>, _ value: [UInt8]) {
    guard let key = ContainerKey(key), let letter = Letter(rawValue: key.letter),
      key.rest.isEmpty || ![.value, .post, .state].contains(letter)
    else { return nil }
    self.init(
      letter: letter, isOwn: key.isOwn, name: key.name, part: key.rest.joined(separator: "/"),
      value: value)
  }
}

extension ContainerPart {
  /// Returns the content of a part of a name, as a look finds it; no bytes if there is none.
  func meaning(
    of name: String, _ kind: NameKind, in container: SharedContainer
  ) throws -> (bytes: [UInt8]?, version: Version?) {
    switch role {
    case .post:
      let posts = try PostFile(root: container.root, name: name).mark().marks.map(\.text).min()
      return (posts.map { Array($0.utf8) }, nil)
    // Present registrations end with their processes.
    case .last:
      let directory = NamedDirectory(root: container.root, kind: kind, identifier: name)
      let found = try directory.withOpenDirectory { place in
        try tolerating(
          [.noSuchFile, .notDirectory],
          FileDescriptor.readBeneath(
            PresenceDirectory.last, at: place.rawValue, maximumBytes: Presence.maximumBytes
          ) { _ in true })
      }
      return (found ?? nil, nil)
    default:
      let snapshot = try PlainValue(container: container, identifier: name, kind: kind).snapshot()
      return (try snapshot.storedBytes(), snapshot.version)
    }
  }
}

extension ContainerRoot {
  /// The parts whose meaning is copied, with the kinds of their names.
  var meanings: [(kind: NameKind, part: ContainerPart)] {
    (NameKind.users + NameKind.owns).flatMap { kind in
      parts(of: kind.primitive).filter { $0.copied == .meaning }.map { (kind, $0) }
    }
  }
}
