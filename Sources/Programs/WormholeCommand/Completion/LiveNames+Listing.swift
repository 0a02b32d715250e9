import GroupDefaults
import Wormhole
import WormholePeers

extension LiveNames {
  /// Returns the names, sorted, by one listing; of peers also by a look at each, and of keys from
  /// the content of the suite, or of the container's own defaults.
  ///
  /// - Parameter faults: takes the names that cannot be looked at.
  func names(
    in container: SharedContainer?, _ faults: inout NameFaults, suite: String? = nil
  ) throws -> [String] {
    guard self != .group else { return try ContainerLocation.groups().map(\.identifier) }
    guard let container else { return [] }
    let names: [String] =
      switch self {
      case .value: try container.identifiers(of: .value, &faults)
      case .notification: try container.identifiers(of: .notification, &faults)
      case .queue: try container.identifiers(of: .queue, &faults)
      case .presence: try container.identifiers(of: .presence, &faults)
      case .log: try container.identifiers(of: .log, &faults)
      case .claim: try container.own.valueIdentifiers().compactMap(Claim.name(ofOwnValue:))
      case .key: try (GroupDefaults(suite: suite, in: container).storedValues() ?? [:]).map(\.key)
      case .suite: try GroupDefaults.suiteNames(in: container, &faults).compactMap { $0 }
      case .peer: try Peer.all(in: container, &faults).map(\.name)
      case .group: []
      case .role:
        try Set(
          [.presence, .claim].flatMap { (kind: LiveNames) in
            try kind.names(in: container, &faults)
          }
        ).sorted()
      }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}
