import Synchronization
import Wormhole
import WormholeSystem

/// How the parts of a site are made, and when the lease in it may be taken over.
final class ItemHome: LeaseHome {
  let access: ContainerAccess
  private let site: SharedDescriptor
  private let location: ItemPath
  /// When the grace of a holder ends that its user has stopped at a terminal.
  private let paused = Mutex<(holder: LeaseDeclaration, end: ContinuousClock.Instant)?>(nil)

  init(_ site: SharedDescriptor, of location: ItemPath, _ access: ContainerAccess) {
    (self.site, self.location, self.access) = (site, location, access)
  }

  var layout: LeaseLayout { .passing }

  func makeDirectoryIfMissing(
    _ path: String, at directory: Int32, staging: String?
  ) throws(Errno) {
    // In the site itself, a directory whose maker died before it was finished is trash.
    let isOfSite = directory == site.descriptor.rawValue && !path.utf8.contains(UInt8(ascii: "/"))
    try access.makeDirectoryIfMissing(
      path, at: directory, staging: staging ?? (isOfSite ? Self.trashPrefix : nil))
  }

  // It names this process, which may be taking the lease over.
  func setAside(_ name: FileName, at source: Int32) throws(Errno) {
    let taker = LeaseDeclaration(term: .zero).name
    try rename(
      name, at: source, to: Self.trashPrefix + Nonce.next() + "-" + taker,
      at: site.descriptor.rawValue)
  }

  func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Stamp {
    Stamp(try file.status())
  }

  func declaration(_ entry: FileName) -> LeaseDeclaration? { EntryName(entry)?.declaration }

  // MARK: What was put aside

  static let trashPrefix = "trash-"

  /// The process that has put something aside: it may have taken it over.
  static func taker(ofTrash name: FileName) -> LeaseDeclaration? {
    guard name.hasPrefix(trashPrefix) else { return nil }
    let fields = name.text.dropFirst(trashPrefix.count).split(separator: "-", maxSplits: 1)
    return fields.count == 2 ? LeaseDeclaration(FileName(fields[1])) : nil
  }

  // MARK: Overdue holders

  /// How long a killed process may take to end before another look.
  private static let endingTime: Duration = .milliseconds(200)

  /// A program that works on the item itself cannot be kept from changing it, so it is killed first:
  /// a stopped program would write again when it continues.
  ///
  /// - Returns: false if the lease is left to its holder, or what works under it has not ended yet, or
  ///   cannot be ended.
  func mayTakeOver(
    _ held: HeldDirectory, from holder: LeaseDeclaration?
  ) throws(Errno) -> Bool {
    guard try !isLeft(held, to: holder), !LeaseFault.keepingItems.isActive else { return false }
    for name in try entries(of: held, holder) where name.kind == .inPlace {
      _ = try tolerating(
        [.noSuchFile, .accessDenied, .notPermitted, .noSpace, .diskQuotaExceeded],
        announceTaker(to: name, in: held))
      guard try endInheritors(of: held.status(), until: .now + Self.endingTime) else {
        return false
      }
    }
    return true
  }

  /// Whether an overdue holder keeps the lease: a person has stopped it at a terminal, and may
  /// continue it, or a program has inherited the lease and runs.
  func isLeft(_ held: HeldDirectory, to holder: LeaseDeclaration?) throws(Errno) -> Bool {
    if let holder, try isPaused(holder, in: held) { return true }
    for name in try entries(of: held, holder) where name.kind == .inPlace {
      if try isInherited(held, name) { return true }
    }
    return false
  }

  /// How much longer a lease is left to a holder that was stopped at a terminal.
  var patience: Duration? {
    paused.withLock(\.self).map { ContinuousClock.now.duration(to: $0.end) }
      .flatMap { $0 > .zero ? $0 : nil }
  }

  private func entries(
    of held: HeldDirectory, _ holder: LeaseDeclaration?
  ) throws(Errno) -> [EntryName] {
    try held.descriptor.entries().compactMap { EntryName($0.name) }
      .filter { holder == nil || $0.declaration == holder }
  }

  // Only a command's access has no term: to a program that names one the person is not in a session.
  private func isPaused(
    _ holder: LeaseDeclaration, in held: HeldDirectory
  ) throws(Errno) -> Bool {
    guard holder.term == LeaseDeclaration.whileRunning, let status = holder.identity.status,
      status.isStopped, status.isInBackground
    else {
      paused.withLock { $0 = nil }
      return false
    }
    if let known = paused.withLock(\.self), known.holder == holder { return .now < known.end }
    let grace = try grace(of: holder, in: held) ?? LeaseRequest.graceAtTerminal
    paused.withLock { $0 = (holder, .now + grace) }
    guard grace > .zero else { return false }
    Diagnostics.notePatience(
      with: LeaseHolder(identity: holder.identity, held: holder.age), forThe: "lock",
      location.text, lasting: grace)
    return true
  }

  private func grace(
    of holder: LeaseDeclaration, in held: HeldDirectory
  ) throws(Errno) -> Duration? {
    for name in try entries(of: held, holder) {
      let entry = try FileDescriptor.open(
        name.text, at: held.descriptor.rawValue, [.readOnly, .directory, .noFollow])
      if let grace = try entry.entries().lazy.compactMap({ EntryName.grace($0.name) }).first {
        return grace
      }
    }
    return nil
  }

  // The lease may be handed on to a program, and is then overdue when that program is stopped. If the
  // program is not yet declared (its starter was stopped in between), or has ended, any process that
  // inherited the lease keeps it, unless a taker has begun to kill them.
  private func isInherited(_ held: HeldDirectory, _ name: EntryName) throws(Errno) -> Bool {
    guard !name.isPastItsTerm else { return false }
    let declared = name.declaration.identity
    // The age of an access in another namespace is not known.
    guard declared.isVisible || name.declaration.term == LeaseDeclaration.whileRunning else {
      return false
    }
    if declared.hasEnded, try isAnnounced(to: name, in: held) { return false }
    let heirs = try inheritors(of: held.status())
    return heirs.allSatisfy { $0.identity != declared } && heirs.contains { !$0.isStopped }
  }

  // MARK: The announcement

  private func isAnnounced(to name: EntryName, in held: HeldDirectory) throws(Errno) -> Bool {
    try ifPresent(
      FileDescriptor.open(
        name.text, at: held.descriptor.rawValue, [.readOnly, .directory, .noFollow]
      ).announcedTaker()) ?? nil != nil
  }

  // The holder learns that its program has ended before its entry is put aside: this tells it who
  // killed the program. It is only a name, so an error here does not matter.
  private func announceTaker(to name: EntryName, in held: HeldDirectory) throws(Errno) {
    let entry = try FileDescriptor.open(
      name.text, at: held.descriptor.rawValue, [.readOnly, .directory, .noFollow])
    guard try entry.announcedTaker() == nil else { return }
    let taker = LeaseDeclaration(term: .zero).name
    try makeDirectory(FileDescriptor.takerPrefix + taker, at: entry.rawValue)
  }
}

extension FileDescriptor {
  fileprivate static let takerPrefix = "overtaken-"

  /// The process that kills what works under a holder's entry, to take its lease over; nil if there is
  /// none.
  func announcedTaker() throws(Errno) -> LeaseDeclaration? {
    try entries().lazy.compactMap { entry in
      entry.name.hasPrefix(Self.takerPrefix)
        ? LeaseDeclaration(
          FileName(bytes: Array(entry.name.bytes.dropFirst(Self.takerPrefix.utf8.count))))
        : nil
    }.first
  }
}

/// The work of a process that leaves a site.
extension ItemSite {
  /// Removes the site, unless another process uses it. Any process may do that at any moment: each
  /// step succeeds only if a directory is empty, and a process that is about to use it begins again.
  ///
  /// Errors are only reported: the access has ended, and the next process removes what is left.
  ///
  /// - Complexity: One system call; if something was put aside, as many as that has files.
  func leave() {
    Diagnostics.reporting {
      guard try !removeEmpty() else { return }
      try removeUnheldLease()
      try emptyTrash()
      _ = try removeEmpty()
    }
  }

  // What is in a lease that nobody has locked is left of a dead process, or kept.
  private func removeUnheldLease() throws {
    let place = LeaseLayout.passing.held
    guard let held = try tolerating([.noSuchFile, .notDirectory, .accessDenied], open(place)),
      try held.tryLock(.exclusive)
    else { return }
    for entry in try ifPresent(held.entries()) ?? [] {
      _ = try ifPresent(setAside(entry.name, at: held.rawValue))
    }
    _ = try removeIfEmpty(place, at: descriptor)
    // Otherwise a child being started would keep it locked a moment longer.
    try held.unlock()
  }

  /// Removes a site that this process has kept.
  func removeKept() {
    closeKept()
    Diagnostics.reporting {
      let held = LeaseLayout.passing.held
      _ = try removeIfEmpty(held + "/" + LeaseSite.spare, at: descriptor)
      _ = try removeIfEmpty(held, at: descriptor)
    }
    leave()
  }

  // Seen from the site itself, which may have been moved with its parent directory.
  private func removeEmpty() throws(Errno) -> Bool {
    try removeIfEmpty("../" + Self.name(of: location), at: descriptor)
  }

  /// Removes what was put aside, and is not in use.
  private func emptyTrash() throws {
    for entry in try entries() where entry.name.hasPrefix(ItemHome.trashPrefix) {
      try removeTrash(entry.name)
    }
  }

  // It stays locked meanwhile, because its maker may be about to lock it.
  private func removeTrash(_ name: FileName) throws {
    let others: [Errno] = [.accessDenied, .noSuchFile, .notDirectory, .tooManyLinks]
    guard let found = try tolerating(others, open(name.text)) else {
      // Only its user can remove another user's directory. A file of another kind is in no use.
      let status = try ifPresent(fileStatus(name, at: descriptor))
      if let status, status.kind != .directory {
        try TreeRemoval().remove(name, at: descriptor)
      }
      return
    }
    guard try found.tryLock(.exclusive) else { return }
    try TreeRemoval().remove(name, at: descriptor)
    // Otherwise a child being started would keep it locked a moment longer.
    try found.unlock()
  }
}
