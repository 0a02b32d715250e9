import AppGroup
import FileCoordination
import GroupDefaults
import PeerConnectivity
import PropertyLists

/// What people call what the package keeps for itself: the modules that own the names say so.
enum OwnTitles {
  static func use(ofValue name: String) -> OwnUse {
    GroupDefaults.use(ofOwnValue: name) ?? PeerNames.use(ofOwnValue: name)
      ?? FileCoordinator.use(ofOwnValue: name) ?? OwnUse("the package's own value \(name.quoted)")
  }

  /// Something that one of the package's own names leads to.
  static func title(_ name: String, _ kind: NameKind) -> String {
    switch kind.primitive {
    case .value, .notification: use(ofValue: name).title
    case .queue: queue(name)
    case .consumer: "who consumes " + queue(name)
    case .presence:
      PeerNames.peer(ofPresence: name).map { "the peer \($0.quoted)" } ?? presence(name)
    }
  }

  static func queue(_ name: String) -> String {
    PeerNames.title(ofOwnQueue: name) ?? "the package's own queue \(name.quoted)"
  }

  /// Of those that are not a peer's: `file-presenters` is "file presenters".
  static func presence(_ name: String) -> String {
    String(name.map { $0 == "-" ? " " : $0 })
  }
}

extension ContainerReport {
  /// A report that has looked at the shape of what the package keeps, too.
  static func complete(on container: SharedContainer) throws -> ContainerReport {
    try container.report { name, content in OwnTitles.use(ofValue: name).problem(content) }
  }
}

extension ContainerReport.HeldLease {
  /// Of what, for a column.
  var title: String { kind.isOwn ? OwnTitles.title(identifier, kind) : identifier }

  /// Of what, in a sentence.
  var titleInSentence: String { kind.isOwn ? title : identifier.quoted }
}
