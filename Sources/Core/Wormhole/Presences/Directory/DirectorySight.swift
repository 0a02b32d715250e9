import WormholeSystem

/// Looks at the members of a directory after its events, and a few times again. The dead are not
/// moved aside: on ext4 that takes longest, and observers need not wait for it.
final class DirectorySight: PresenceSight {
  private let presence: PresenceDirectory
  private let looks = FollowUpChecks()

  init(_ presence: PresenceDirectory) {
    self.presence = presence
  }

  func begin(_ signal: @escaping @Sendable () -> Void) throws -> (any Watching)? {
    looks.use(signal)
    return try presence.directory.watch { [looks] in looks.begin() }
  }

  func lookAgain() { looks.begin() }

  func retry() { looks.check() }

  func cancel() { looks.cancel() }

  func look(last: [PresenceMember]?) throws -> PresenceLook {
    let mayHaveChanged = looks.takeEvent()
    do {
      if let last, !mayHaveChanged, try presence.areLocked(last.map(\.id)) {
        return PresenceLook(live: last)
      }
      let look = try look()
      return mayHaveChanged && look.live == last ? try afterMoment(look) : look
    } catch {
      looks.noteFailure()
      throw error
    }
  }

  private func look() throws -> PresenceLook {
    try presence.look(movesAside: false) ?? PresenceLook()
  }

  /// There was an event, but nothing has changed: most likely a lock is about to be free. Trying
  /// for a moment is sooner than any timer.
  private func afterMoment(_ look: PresenceLook) throws -> PresenceLook {
    guard !look.live.isEmpty else { return look }
    for tries in 0..<4 {
      pauseThread(.microseconds(20 << tries))
      if try !presence.areLocked(look.live.map(\.id)) {
        return try self.look()
      }
    }
    return look
  }

  func retire(_ dead: [PresenceMember]) {
    // If it fails, the next look finds them again.
    try? presence.retire(dead)
  }
}

extension PresenceDirectory {
  /// Whether all these files still exist and are locked, by any process.
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
