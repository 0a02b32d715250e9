import GroupDefaults
import Wormhole
import WormholePeers

/// A kind of names that exist at this moment: `ls` prints them, and a completion offers them.
enum LiveNames: String, Sendable {
  case message, notification, queue, log, presence, peer
  /// Of defaults.
  case key, suite
  case group

  /// The kinds that `ls` prints.
  static let ofContainers: [LiveNames] = [.message, .notification, .queue, .log, .presence, .peer]

  /// Returns the names, sorted.
  ///
  /// - Parameters:
  ///   - container: Nil if there is none.
  ///   - suite: The suite whose keys are wanted; nil for the container's own.
  /// - Complexity: One listing; of peers also a look at each, and of keys the content of the suite.
  func names(in container: SharedContainer?, suite: String? = nil) throws -> [String] {
    guard self != .group else { return try ContainerLocation.groups().map(\.identifier) }
    guard let container else { return [] }
    let names: [String] =
      switch self {
      case .message: try container.valueIdentifiers()
      case .notification: try container.notificationNames()
      case .queue: try container.queueNames()
      case .presence: try container.presenceNames()
      case .log: try container.isOnEtcd ? [] : container.logNames()
      case .key:
        try (GroupDefaults(suite: suite, in: container).storedValues() ?? [:]).map(\.key)
      case .suite: try GroupDefaults.suiteNames(in: container).compactMap { $0 }
      case .peer: try PeerSession(PeerSession.standardName, in: container).peers().map(\.name)
      case .group: []
      }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}

extension SharedContainer {
  var isOnEtcd: Bool { Engines.isMeant(by: location) }
}
