import Containers
import Monitoring
import SystemCalls

extension FollowUpChecks {
  /// The members of a presence, for a check.
  ///
  /// - Parameter last: what the last check found.
  func members(of presence: Presence, last: [PresenceMember]?) throws -> [PresenceMember] {
    let mayHaveChanged = takeEvent()
    do {
      if let last, !mayHaveChanged, try presence.place.areLocked(last.map(\.id)) { return last }
      let members = try presence.members()
      return mayHaveChanged && members == last
        ? try afterMoment(members, of: presence) : members
    } catch {
      noteFailure()
      throw error
    }
  }
}

/// The event told of something, and nothing has changed: most likely a lock that is about to be free.
/// Trying for a moment is sooner than any timer.
private func afterMoment(
  _ members: [PresenceMember], of presence: Presence
) throws -> [PresenceMember] {
  guard !members.isEmpty else { return members }
  for tries in 0..<4 {
    pauseThread(.microseconds(20 << tries))
    if try !presence.place.areLocked(members.map(\.id)) { return try presence.members() }
  }
  return members
}

extension PresenceDirectory {
  /// Whether all these are still there and locked, by whomever.
  fileprivate func areLocked(_ ids: [String]) throws -> Bool {
    guard !ids.isEmpty else { return true }
    guard let place = try directory.open() else { return false }
    for id in ids {
      do throws(Errno) {
        let file = try FileDescriptor.openBeneath(
          Self.memberName(id), at: place.rawValue, [.readOnly, .nonBlocking])
        if try file.tryLock(.shared) { return false }
      } catch {
        guard Self.isPassedOver(error) else { throw error }
        return false
      }
    }
    return true
  }
}
