import GroupDefaults
import Wormhole
import WormholePeers

/// The names that exist at this moment, for a completion script: what may be completed depends on the
/// container and not on the description of the command.
enum LiveNames: String, CaseIterable, Sendable {
  case messages
  case notifications
  case queues
  case presences
  case logs
  case keys
  case suites
  case peers
  case groups

  /// Returns the names, sorted.
  ///
  /// - Parameters:
  ///   - container: Nil where there is none.
  ///   - suite: The suite whose keys are wanted; nil for the container's own.
  /// - Complexity: One listing; of peers also a look at each, and of keys the content of the suite.
  func names(in container: SharedContainer?, suite: String?) throws -> [String] {
    guard self != .groups else { return try ContainerLocation.groups().map(\.identifier) }
    guard let container else { return [] }
    let names: [String]
    switch self {
    case .messages: names = try container.valueIdentifiers()
    case .notifications: names = try container.notificationNames()
    case .queues: names = try container.queueNames()
    case .presences: names = try container.presenceNames()
    case .logs: names = try container.logNames()
    case .keys:
      let values = try GroupDefaults(suite: suite, in: container).storedValues() ?? [:]
      names = Array(values.keys)
    case .suites: names = try GroupDefaults.suiteNames(in: container).compactMap { $0 }
    case .peers:
      names = try PeerSession(PeerSession.standardName, in: container).peers().map(\.name)
    case .groups: names = []
    }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}
