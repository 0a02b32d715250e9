import FileCoordination
import GroupDefaults

/// What a value of a container is used for, as its identifier tells.
enum ValueUse: Hashable {
  case message
  /// Defaults; nil is the container's own suite.
  case defaults(suite: String?)
  /// What file presenters are being asked.
  case presenters

  init(_ identifier: String) {
    if FileCoordinator.holdsRequests(identifier) {
      self = .presenters
    } else if GroupDefaults.holdsDefaults(identifier) {
      self = .defaults(suite: GroupDefaults.suiteName(of: identifier))
    } else {
      self = .message
    }
  }
}
