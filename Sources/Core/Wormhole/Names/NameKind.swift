/// The primitive that a name belongs to, and its origin: the top-level directories of the
/// container.
///
/// The package's own names (the defaults of the group, the pairing of a peer) lie in `own/`, apart
/// from the users' names. So every text is an ordinary identifier, and no user's message can
/// replace the package's data.
package struct NameKind: Hashable, Sendable {
  package enum Primitive: String, Sendable {
    case value = "values"
    case notification = "notifications"
    case presence = "presence"
    case queue = "queues"
    /// The consumer of a queue is exclusively present under the queue's name.
    case consumer = "consumers"
    case log = "logs"
  }

  package let primitive: Primitive
  /// Whether the package chose the name, not a user.
  package let isOwn: Bool
  /// The directory of all names of this kind, relative to the container.
  package let path: String

  /// The directory of the package's own names.
  package static let own = "own"
  /// The other entries of that directory: see WatchConnectivity, `Transaction` and `CopyPauseFile`.
  package static let otherOwn = ["watches", "inbox", "transactions", "picture"]

  package init(_ primitive: Primitive, isOwn: Bool = false) {
    self.primitive = primitive
    self.isOwn = isOwn
    path = (isOwn ? Self.own + "/" : "") + primitive.rawValue
  }

  /// Whether it matters after the end of all processes; registrations end with them.
  var outlivesProcesses: Bool { primitive != .presence && primitive != .consumer }

  package static let value = NameKind(.value)
  package static let notification = NameKind(.notification)
  package static let presence = NameKind(.presence)
  package static let queue = NameKind(.queue)
  package static let consumer = NameKind(.consumer)
  package static let log = NameKind(.log)
  package static let ownValue = NameKind(.value, isOwn: true)
  package static let ownPresence = NameKind(.presence, isOwn: true)
  package static let ownQueue = NameKind(.queue, isOwn: true)
  static let ownConsumer = NameKind(.consumer, isOwn: true)

  package static let users = [value, notification, presence, queue, consumer, log]
  package static let owns = [ownValue, ownPresence, ownQueue, ownConsumer]

  /// The directory and its parents in the container, topmost first.
  package var chain: [String] { isOwn ? [Self.own, path] : [path] }
}
