import Synchronization
import WormholePropertyLists
package import WormholeSystem

/// `presence/<name>/`: one file for each live registration, locked as long as it lives.
///
/// ```
/// entering-<id>.plist   being written; its process created it, locked it, and then writes
/// member-<id>.plist     a registration: complete before it got this name, and locked
/// last.plist            the last registration; with `ended` if it left, without it if it died
/// exclusive.plist       the registration with the exclusive role, changed under lease/ like a value
/// ```
///
/// **Presence.** A member is present if its file is locked and names this directory. No process
/// locks another's file, except for the shared lock that a check takes for a moment. So a check that
/// gets the lock has found a dead member, and renames it to `last.plist`; observers hear first.
///
/// **Events.** The kernel closes the open files of a dead process. The file was open for writing, so
/// watchers of the directory get IN_CLOSE_WRITE. Checks open it only for reading, and cause no
/// event. The event comes just before the lock is released: see `FollowUpChecks`. A leaving process
/// removes its file first, which is visible at once.
///
/// **What a crash leaves**: an unlocked `entering-` file, which the next process that enters or a
/// sweep of the container removes, or a dead member, which the next check moves aside.
package struct PresenceDirectory: PresenceStore {
  let container: SharedContainer
  let directory: NamedDirectory
  private let vacancy = Vacancy()

  package init(container: SharedContainer, name: String, kind: NameKind) {
    self.container = container
    directory = NamedDirectory(root: container.root, kind: kind, identifier: name)
  }

  package static let memberPrefix = "member-"
  package static let enteringPrefix = "entering-"
  static let suffix = ".plist"
  package static let last = "last.plist"
  /// The same as rows.
  package static let parts = [
    ContainerPart(each: .registration, copied: .nothing) { name in
      [memberPrefix, enteringPrefix].contains { id(in: name, after: $0) != nil }
    },
    ContainerPart(last, .last, copied: .meaning),
    ContainerPart(ValueFile.name(of: .presence), .content, copied: .nothing),
    .lease, .identifier(copied: .nothing),
  ]
  /// A directory with more entries was planted, and examining it would never end.
  static let maximumEntries = 10_000

  var root: ContainerRoot { directory.root }
  var title: PresenceTitle { PresenceTitle(name: directory.identifier, kind: directory.kind) }

  package static func memberName(_ id: String) -> String { memberPrefix + id + suffix }
  static func enteringName(_ id: String) -> String { enteringPrefix + id + suffix }

  /// Returns the id in a name of ours, or nil for any other name.
  package static func id(in name: FileName, after prefix: String) -> String? {
    guard name.bytes.count <= 64, name.hasPrefix(prefix),
      name.bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    else { return nil }
    let id = name.bytes.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count)
    let isOurs = id.allSatisfy { Nonce.isDigit($0) || $0 == UInt8(ascii: "-") }
    return isOurs && !id.isEmpty ? String(decoding: id, as: UTF8.self) : nil
  }

  package var path: String { directory.path }

  package func look(without isKnown: (String) -> Bool) throws -> PresenceListing {
    try look(movesAside: true, without: isKnown) ?? PresenceListing()
  }

  package func last(after listing: PresenceListing) throws -> PresenceStatus {
    if let record = try lastRecord() {
      return .gone(last: PresenceMember(record, state: .gone), ended: record.ended)
    }
    // Only if it cannot be moved aside.
    if let last = listing.dead.last { return .gone(last: last, ended: nil) }
    return try hasLast() ? .gone(last: nil, ended: nil) : .neverSeen
  }

  package func enter(_ record: PresenceRecord, tidies: Bool) throws -> any PresenceHold {
    try root.changing {
      if tidies { try sweep() }
      return DirectoryRegistration(self, record, try makeFile(record))
    }
  }

  package func exclusiveEntry(
    _ record: PresenceRecord, _ overtaking: Presence.Overtaking,
    until deadline: ContinuousClock.Instant, isGone: (() throws -> Bool)?
  ) -> any Waiting<any PresenceHold> {
    DirectoryRoleAcquisition(self, record, overtaking: overtaking, until: deadline, isGone: isGone)
  }

  package func watch(_ signal: @escaping @Sendable () -> Void) throws -> any MembershipWatch {
    try DirectoryMembershipWatch(self, signal)
  }

  static func watchNames(
    of kind: NameKind, in root: ContainerRoot, _ signal: @escaping @Sendable () -> Void
  ) throws -> Watch {
    let path = root.path + "/" + kind.path
    return try reporting("watch the names of presences", path: path) {
      _ = try root.handle()
      return root.watch(path, below: kind.parents(in: root).dropLast()) { _ in signal() }
    }
  }

  // MARK: Looking

  /// - Parameter movesAside: Whether the last dead registration is recorded as such.
  /// - Returns: nil if there is no such directory.
  /// - Complexity: one system call if nothing has changed since a look that found no process.
  package func look(
    movesAside: Bool, without isKnown: (String) -> Bool = { _ in false }
  ) throws -> PresenceListing? {
    if try vacancy.isKnown(at: directory) { return PresenceListing() }
    return try directory.withOpenDirectory([.readOnly, .directory]) {
      try look(at: $0, movesAside: movesAside, without: isKnown)
    }
  }

  private func look(
    at place: borrowing FileDescriptor, movesAside: Bool, without isKnown: (String) -> Bool
  ) throws -> PresenceListing {
    // Before the look, so that the next one notices changes during this one.
    let status = try place.status()
    let names = try names(in: place)
    var listing = PresenceListing()
    guard !names.isEmpty else {
      vacancy.note(status)
      return listing
    }
    let examiner = try Examiner(place, root)
    for (name, id) in names where !isKnown(id) {
      guard let member = try examiner.examine(name, id) else { continue }
      if member.state == .gone { listing.dead.append(member) } else { listing.live.append(member) }
    }
    listing.live = listing.live.ordered { $0.isBefore($1) }
    listing.dead = listing.dead.ordered { $0.isBefore($1) }
    if movesAside { moveAside(listing.dead.map(\.id), in: place) }
    return listing
  }

  private func names(in place: borrowing FileDescriptor) throws -> [(name: String, id: String)] {
    var names: [(String, String)] = []
    var count = 0
    var more = true
    while more {
      more = try place.nextEntries { entry in
        count += 1
        guard entry.isDirectory != true,
          let id = Self.id(in: entry.name, after: Self.memberPrefix)
        else { return }
        names.append((entry.name.text, id))
      }
      guard count <= Self.maximumEntries else {
        throw WormholeError(
          .tooLarge, "look who is present", path: directory.path,
          reason: "there are more than \(Self.maximumEntries) files",
          remedy: "remove what is not the container's")
      }
    }
    return names
  }

  /// Returns the live registration with an id, even one that has not quite entered.
  func living(_ id: String, at place: borrowing FileDescriptor) throws -> PresenceMember? {
    let examiner = try Examiner(place, root)
    // It may get its other name between two looks.
    let entering = Self.enteringName(id)
    for name in [Self.memberName(id), entering, Self.memberName(id)] {
      guard var member = try examiner.examine(name, id) else { continue }
      member.isEntering = name == entering
      return member.state == .gone ? nil : member
    }
    return nil
  }

  /// Returns the last registration, with the time at which it left; nil if there is none, or its
  /// record cannot be read.
  func lastRecord() throws -> PresenceRecord? {
    try directory.withOpenDirectory { try Examiner($0, root).read(Self.last, id: nil)?.record }
      ?? nil
  }

  /// Whether there is a file of a registration, whose process may have ended.
  func hasFile(of id: String) throws -> Bool {
    guard let place = try directory.open() else { return false }
    return try [Self.enteringName(id), Self.memberName(id)].contains {
      try exists($0, at: place.rawValue)
    }
  }

  /// Returns whether any process was ever present.
  package func hasLast() throws -> Bool {
    guard let place = try directory.open() else { return false }
    return try exists(Self.last, at: place.rawValue)
  }

  // MARK: Sweeping

  // Ids are never reused, so a dead registration stays dead, even if another process moves it
  // aside.
  private func moveAside(_ dead: [String], in place: borrowing FileDescriptor) {
    for id in dead {
      // Another process may be faster; or the file system is read-only, where this does no harm.
      try? rename(Self.memberName(id), at: place.rawValue, to: Self.last, at: place.rawValue)
    }
  }

  /// Moves aside registrations that are dead, or have lost their role to another.
  func retire(_ ids: [String]) throws {
    guard !ids.isEmpty, let place = try directory.open() else { return }
    moveAside(ids, in: place)
  }

  /// Watches the file of a registration: reports its removal and, unless it is this process's own, the end
  /// of its process.
  ///
  /// - Returns: Nil if there is no such file.
  func watchMember(
    _ id: String, isOwn: Bool = false, _ hear: @escaping @Sendable (WatchNews) -> Void
  ) throws -> Watch? {
    try directory.withOpenDirectory { place -> Watch? in
      let name = Self.memberName(id)
      let options: OpenOptions = [.readOnly, .nonBlocking]
      guard let file = try ifPresent(FileDescriptor.openBeneath(name, at: place.rawValue, options))
      else { return nil }
      var events: WatchEvents = [.attributes, .selfMoved, .selfDeleted]
      if !isOwn { events.formUnion(.closedAfterWriting) }
      return ChangeMonitor.shared.watchOpen(file, events, hear: hear)
    } ?? nil
  }

  /// Moves the dead registrations aside, and removes the leftovers of processes that died while
  /// they entered.
  package func sweep() throws {
    guard try look(movesAside: true) != nil else { return }
    _ = try directory.withOpenDirectory([.readOnly, .directory]) { try sweep(at: $0) }
  }

  private func sweep(at place: borrowing FileDescriptor) throws {
    let examiner = try Examiner(place, root)
    for entry in try place.entries() where entry.isDirectory != true {
      do throws(Errno) {
        _ = try examiner.isAbandoned(entry.name, removing: true)
      } catch {
        guard Self.isPassedOver(error) else { throw error }
      }
    }
  }

  // Gone; or a link, a socket or another user's file.
  static func isPassedOver(_ error: Errno) -> Bool {
    [.noSuchFile, .tooManyLinks, .noSuchDevice, .accessDenied].contains(error)
  }
}

extension PresenceMember {
  fileprivate func isBefore(_ other: PresenceMember) -> Bool {
    (enteredAt, id) < (other.enteredAt, other.id)
  }
}

/// The knowledge that no process is present, as long as the directory has not changed: every
/// registration changes its times. A time is trusted only if it was at least two seconds old at the
/// look, as in `SynchronizedNames`.
final class Vacancy: Sendable {
  private let known = Mutex<FileStatus?>(nil)

  /// - Parameter status: the directory's status just before it was found to be without members.
  func note(_ status: FileStatus) {
    guard status.isTrusted(at: realTime()) else { return }
    known.withLock { $0 = status }
  }

  /// Returns whether the directory is unchanged since it was found to be without members.
  func isKnown(at directory: NamedDirectory) throws -> Bool {
    guard let known = known.withLock({ $0 }) else { return false }
    let handle = try directory.root.handle()
    let container = handle.descriptor.rawValue
    return try ifPresent(fileStatus(directory.relativePath, at: container)) == known
  }
}

// For the directory's other primitives, whose files name registrations, and for inspections.
extension Presence {
  /// The directory of registrations in the container's directory on this machine.
  package var place: PresenceDirectory {
    PresenceDirectory(container: container, name: name, kind: kind)
  }
}

/// Looks at the members of a directory after its events, and a few times again. The dead are not
/// moved aside: on ext4 that takes longest, and observers need not wait for it.
final class DirectoryMembershipWatch: MembershipWatch {
  private let presence: PresenceDirectory
  private let looks: FollowUpChecks
  private let watch: Watch
  private let retry = Retry()

  init(_ presence: PresenceDirectory, _ signal: @escaping @Sendable () -> Void) throws {
    self.presence = presence
    let looks = FollowUpChecks(check: signal)
    self.looks = looks
    watch = try presence.directory.watch { looks.begin() }
    // The event of a process that ends before the first look may come before it.
    looks.begin()
  }

  var detection: ChangeDetection { watch.detection }

  func cancel() {
    looks.cancel()
    watch.cancel()
  }

  func look(last: [PresenceMember]?) throws -> PresenceListing {
    let mayHaveChanged = looks.takeEvent()
    do {
      if let last, !mayHaveChanged, try presence.areLocked(last.map(\.id)) {
        return PresenceListing(live: last)
      }
      let listing = try look()
      return mayHaveChanged && listing.live == last ? try afterMoment(listing) : listing
    } catch {
      looks.noteFailure()
      retry.soon { [looks] in looks.check() }
      throw error
    }
  }

  private func look() throws -> PresenceListing {
    try presence.look(movesAside: false) ?? PresenceListing()
  }

  /// There was an event, but nothing has changed: most likely a lock is about to be free. Retrying
  /// for a moment is faster than any timer.
  private func afterMoment(_ listing: PresenceListing) throws -> PresenceListing {
    guard !listing.live.isEmpty else { return listing }
    for tries in 0..<4 {
      pauseThread(.microseconds(20 << tries))
      if try !presence.areLocked(listing.live.map(\.id)) {
        return try self.look()
      }
    }
    return listing
  }

  func retire(_ dead: [PresenceMember]) {
    // If it fails, the next look finds them again.
    try? presence.retire(dead.map(\.id))
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

extension DirectoryEngine: PresenceEngine {
  package func presence(
    _ name: String, _ kind: NameKind, in container: SharedContainer
  ) -> any PresenceStore { PresenceDirectory(container: container, name: name, kind: kind) }

  package func watchOwnPresenceNames(
    _ signal: @escaping @Sendable () -> Void
  ) throws -> any Cancelling {
    try PresenceDirectory.watchNames(of: .ownPresence, in: root, signal)
  }
}
