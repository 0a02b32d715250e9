import GroupDefaults
import Wormhole
import WormholeInspection
import WormholePeers

/// Titles for the values and queues that the package keeps for itself; the modules that own the names
/// define the titles.
enum OwnTitles {
  static func use(ofValue name: String) -> OwnUse {
    GroupDefaults.use(ofOwnValue: name) ?? PeerNames.use(ofOwnValue: name)
      ?? PlainLog.use(ofOwnValue: name) ?? Claim.use(ofOwnValue: name)
      ?? OwnUse("the package's own value \(name.quoted)")
  }

  static func title(_ name: String, _ kind: NameKind) -> String {
    switch kind.primitive {
    case .value, .notification, .log: use(ofValue: name).title
    case .queue: queue(name)
    case .consumer: "the consumer of " + queue(name)
    case .presence:
      PeerNames.title(ofOwnPresence: name) ?? PlainLog.use(ofOwnValue: name)?.title
        ?? presence(name)
    }
  }

  static func queue(_ name: String) -> String {
    PeerNames.title(ofOwnQueue: name) ?? "the package's own queue \(name.quoted)"
  }

  /// The title of a presence that is not a peer's: `file-presenters` is "file presenters".
  static func presence(_ name: String) -> String { String(name.map { $0 == "-" ? " " : $0 }) }
}

extension ContainerReport {
  /// A report that has also checked the structure of the package's own values.
  static func complete(
    on container: SharedContainer, _ cluster: ClusterExamination
  ) throws -> ContainerReport {
    try container.report(cluster) { name, content in OwnTitles.use(ofValue: name).problem(content) }
  }
}

extension ContainerReport.HeldLease {
  var title: String { kind.isOwn ? OwnTitles.title(identifier, kind) : identifier }

  var titleInSentence: String { kind.isOwn ? title : identifier.quoted }
}
