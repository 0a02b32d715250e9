import SystemCalls

/// Which primitive a name belongs to, and who has given it: the container's directories.
///
/// The names that the package itself uses (the defaults of the group, the pairing of a peer) lie in
/// `own/`, apart from those that its users give. So any text is an ordinary identifier, and no
/// message that somebody sends can take the place of what the package keeps.
package struct NameKind: Hashable, Sendable {
  /// What a name is of.
  package enum Primitive: String, Sendable {
    case value = "values"
    case notification = "notifications"
    case presence = "presence"
    case queue = "queues"
    /// Who consumes a queue is exclusively present under the queue's name.
    case consumer = "consumers"
  }

  package let primitive: Primitive
  /// Whether the package has given the name, and no user.
  package let isOwn: Bool
  /// The directory of all names of this kind, relative to the container.
  let path: String

  /// The directory of the package's own names.
  package static let own = "own"
  /// What else lies in there: see WatchConnectivity.
  static let otherOwn = ["watches", "inbox"]

  init(_ primitive: Primitive, isOwn: Bool = false) {
    self.primitive = primitive
    self.isOwn = isOwn
    path = (isOwn ? Self.own + "/" : "") + primitive.rawValue
  }

  static let value = NameKind(.value)
  static let notification = NameKind(.notification)
  static let presence = NameKind(.presence)
  static let queue = NameKind(.queue)
  static let consumer = NameKind(.consumer)
  static let ownValue = NameKind(.value, isOwn: true)
  package static let ownPresence = NameKind(.presence, isOwn: true)
  static let ownQueue = NameKind(.queue, isOwn: true)
  static let ownConsumer = NameKind(.consumer, isOwn: true)

  static let users = [value, notification, presence, queue, consumer]
  static let owns = [ownValue, ownPresence, ownQueue, ownConsumer]

  /// The directory and those above it in the container, the uppermost first.
  var chain: [String] { isOwn ? [Self.own, path] : [path] }

  /// The paths whose replacement matters to who watches something of this kind.
  func parents(in root: ContainerRoot) -> [String] {
    [root.path] + chain.map { root.path + "/" + $0 }
  }

  /// Makes the directory of all names of this kind where it is missing.
  func make(in root: ContainerRoot, at container: Int32) throws(Errno) {
    for path in chain { try root.makeDirectoryIfMissing(path, at: container) }
  }
}
