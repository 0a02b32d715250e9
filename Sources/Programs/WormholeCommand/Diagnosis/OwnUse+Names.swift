import GroupDefaults
import Wormhole
import WormholeInspection
import WormholePeers

extension OwnUse {
  /// Returns the use of a name that the package keeps for itself, as the module that owns it defines
  /// it; nil for a user's name.
  static func of(_ name: String, _ kind: NameKind) -> OwnUse? {
    guard kind.isOwn else { return nil }
    return switch kind.primitive {
    case .value, .notification, .log:
      GroupDefaults.use(ofOwnValue: name) ?? PeerNames.use(ofOwnValue: name)
        ?? PlainLog.use(ofOwnValue: name) ?? Claim.use(ofOwnValue: name)
        ?? OwnUse("the package's own value \(name.quoted)")
    case .queue: OwnUse(queue(name))
    case .consumer: OwnUse("the consumer of " + queue(name))
    case .presence:
      // The file presenters are present as "file-presenters".
      PeerNames.title(ofOwnPresence: name).map { OwnUse($0) } ?? PlainLog.use(ofOwnValue: name)
        ?? OwnUse(String(name.map { $0 == "-" ? " " : $0 }))
    }
  }

  private static func queue(_ name: String) -> String {
    PeerNames.title(ofOwnQueue: name) ?? "the package's own queue \(name.quoted)"
  }
}
