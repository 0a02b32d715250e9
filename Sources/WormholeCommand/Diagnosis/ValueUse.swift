import FileCoordination
import GroupDefaults
import PeerConnectivity

/// What a value of a container is used for, as its identifier tells.
enum ValueUse: Hashable {
  case message
  /// Defaults; nil is the container's own suite.
  case defaults(suite: String?)
  /// What file presenters are being asked.
  case presenters
  /// What peers are to know of each other, and how they are started.
  case peers

  init(_ identifier: String) {
    if FileCoordinator.holdsRequests(identifier) {
      self = .presenters
    } else if PeerNames.holdsValue(identifier) {
      self = .peers
    } else if GroupDefaults.holdsDefaults(identifier) {
      self = .defaults(suite: GroupDefaults.suiteName(of: identifier))
    } else {
      self = .message
    }
  }
}
