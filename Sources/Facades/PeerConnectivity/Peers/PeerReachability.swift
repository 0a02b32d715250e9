import AppGroup

extension PeerReachability {
  /// Looks whether a peer can be asked.
  static func of(_ peer: String, in container: SharedContainer) throws -> PeerReachability {
    let presence = container.own.presence(PeerNames.presence(peer))
    if let active = try presence.members().active { return PeerReachability(active) }
    if try Launcher.isLaunchable(peer, for: .request, in: container) { return .launchable }
    switch try presence.status() {
    case .neverSeen: return .neverSeen
    case .gone(let last, let ended): return .gone(last: last, ended: ended)
    // It has come in this moment; or a process is here without being reached.
    case .running(let member), .unknown(let member), .suspended(let member):
      return member.mailbox == nil ? .neverSeen : .reachable(member)
    }
  }

  /// The reachability as far as the present processes show it.
  init(_ members: [PresenceMember]) {
    self = members.active.map { PeerReachability($0) } ?? .gone(last: nil, ended: nil)
  }

  private init(_ active: PresenceMember) {
    self = active.state == .suspended ? .suspended(active) : .reachable(active)
  }

  /// Whether a process is active under the name, running or not.
  var isActive: Bool { member != nil }

  /// The process that is active under the name, running or not.
  var member: PresenceMember? {
    switch self {
    case .reachable(let member), .suspended(let member): member
    case .launchable, .gone, .neverSeen: nil
    }
  }

  /// The process in the way of an answer.
  var holder: LeaseHolder? { member?.holder }
}
