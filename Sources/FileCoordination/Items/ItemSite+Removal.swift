import AppGroup
import SystemCalls

/// No litter: whoever leaves a site last removes it, with all that dead processes left in it.
extension ItemSite {
  /// For a moment whoever leaves tries again: the one who has the lease may be leaving, too, and may
  /// have seen that somebody is there.
  private static let patience: Duration = .milliseconds(5)

  /// Removes the site unless somebody is there.
  func removeIfUnused() throws {
    // What a dead process claimed becomes trash in the first round.
    for _ in 0..<2 {
      do {
        try emptyTrash()
        let request = LeaseRequest(
          site: lease, mode: .exclusive, term: LeaseTerm.standard,
          deadline: .now + Self.patience)
        guard case .acquired(let lease) = try request.attempt() else { return }
        guard try removeIfUnused(under: lease) == .trashLeft else { return }
      } catch let error as AppGroupError where [.timedOut, .leaseLost].contains(error.code) {
        // Somebody is there, and removes it in turn.
        return
      } catch let error as Errno where error == .staleHandle || error == .noSuchFile {
        // Somebody was quicker.
        return
      }
    }
  }

  enum Removal {
    case removed, used, trashLeft
  }

  /// The same for whoever has the lease, which then ends.
  func removeIfUnused(under lease: Lease) throws -> Removal {
    try withExtendedLifetime(lease) {
      let names = try entries().map(\.name)
      guard names.map(\.text) == [LeaseSite.lease] else {
        return try removeDeadClaims(names, under: lease) ? .trashLeft : .used
      }
      guard try lease.dismantle() else { return .used }
      do throws(Errno) {
        try removeDirectory(Self.path(of: location))
        return .removed
      } catch {
        // Somebody has just come, and stays.
        guard [.directoryNotEmpty, .alreadyExists, .noSuchFile].contains(error) else { throw error }
        return .used
      }
    }
  }

  /// - Returns: whether there is something to be removed now.
  private func removeDeadClaims(_ names: [FileName], under lease: Lease) throws -> Bool {
    var hasTrash = false
    for name in names {
      if ClaimName(name) != nil, try isAbandoned(name), let taken = try lease.takeIn(name.text) {
        try lease.discard(taken)
        hasTrash = true
      } else if isTrash(name), try isAbandoned(name) {
        hasTrash = true
      }
    }
    return hasTrash
  }

  /// Removes what nobody wants any more, and what dead processes were about to remove.
  private func emptyTrash() throws {
    for name in try entries().map(\.name) where isTrash(name) {
      guard try isAbandoned(name) else { continue }
      try TreeRemoval().remove(name, at: descriptor)
    }
  }

  private func isTrash(_ name: FileName) -> Bool {
    name.hasPrefix(ClaimName.overtakenPrefix) || name.hasPrefix(Self.trashPrefix)
  }

  // Its owner is dead or has left: a directory that is in use is locked.
  private func isAbandoned(_ name: FileName) throws(Errno) -> Bool {
    do throws(Errno) {
      let open = try FileDescriptor.open(
        name.text, at: descriptor, [.readOnly, .directory, .noFollow])
      return try open.tryLock(.exclusive)
    } catch {
      guard [.noSuchFile, .notDirectory, .tooManyLinks].contains(error) else { throw error }
      // No directory: nobody's claim, and so in nobody's use.
      return error != .noSuchFile
    }
  }
}
