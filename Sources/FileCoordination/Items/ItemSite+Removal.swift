import AppGroup
import SystemCalls

/// No litter: whoever leaves a site last removes it, with all that dead processes left in it.
extension ItemSite {
  /// Removes the site unless somebody is there.
  func removeIfUnused() throws {
    // What a dead process claimed becomes trash in the first round.
    for _ in 0..<2 {
      do {
        try emptyTrash()
        let request = LeaseRequest(
          site: lease, mode: .exclusive, term: LeaseTerm.standard, deadline: .now)
        guard case .acquired(let lease) = try request.attempt() else { return }
        let removal = try removeIfUnused(under: lease)
        guard removal == .trashLeft else { return }
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
  ///
  /// - Parameter claim: was removed under the lease.
  func removeIfUnused(under lease: Lease, without claim: ClaimName? = nil) throws -> Removal {
    try withExtendedLifetime(lease) {
      var names = lease.surroundings.filter { $0.text != claim?.text }
      if !names.allSatisfy(self.lease.isOfNobody) {
        // Whoever left meanwhile could not have the lease, and leaves the site to us.
        names = try entries().map(\.name)
      }
      guard names.allSatisfy(self.lease.isOfNobody) else {
        return try removeDeadClaims(names, under: lease) ? .trashLeft : .used
      }
      guard try lease.dismantle(hasNote: names.contains(where: self.lease.isNote)) else {
        return .used
      }
      do throws(Errno) {
        try removeDirectory(Self.path(of: location))
        return .removed
      } catch {
        guard [.directoryNotEmpty, .alreadyExists, .noSuchFile].contains(error) else { throw error }
      }
      // Somebody has just come, and stays; or what was put away is still there.
      do throws(Errno) {
        return try entries().contains { isTrash($0.name) } ? .trashLeft : .used
      } catch {
        guard error == .noSuchFile else { throw error }
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
