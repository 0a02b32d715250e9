import Dispatch
import FoundationEssentials
import PropertyLists
import Synchronization
import SystemCalls

/// This process being present, until it leaves, forgets the registration, or ends.
///
/// A child that is forked without exec shares the lock (flock(2)): it keeps the registration alive
/// after its parent's death until it ends, too; others then see it as `unknown`. Programs that are
/// started inherit nothing.
public final class PresenceRegistration: Sendable {
  private enum Phase {
    case new
    case here(PresencePost)
    case left
    /// The role is another's.
    case overtaken(LeaseHolder?)
  }

  private struct Condition {
    var phase = Phase.new
    var watch: Watch?
    var isToBeMadeAgain = false
  }

  /// Where this process is present.
  public let presence: Presence
  let record: PresenceRecord
  private let condition = Mutex(Condition())
  private let queue = Blocking.queue()

  /// Until the next look whether what was removed may be made again.
  private static let pause: Duration = .milliseconds(200)

  init(_ presence: Presence, _ record: PresenceRecord) {
    self.presence = presence
    self.record = record
  }

  deinit { leave() }

  /// The registration among the `members()`; the same as long as it lasts.
  public var id: String { record.id }

  /// Ends the registration: nobody sees it any more when this returns. Once is enough.
  ///
  /// In a forked child it does nothing: there it is the parent's.
  ///
  /// - Complexity: five cheap calls for the record of who was last, unlink, close.
  public func leave() {
    let (watch, post) = condition.withLock { condition -> (Watch?, PresencePost?) in
      let watch = condition.watch
      condition.watch = nil
      guard case .here(let post) = condition.phase else { return (watch, nil) }
      // Excludes: a check that would make the registration again after this.
      condition.phase = .left
      return (watch, post)
    }
    if let post, record.identity == .current {
      withExtendedLifetime(post) { presence.place.remove(record) }
    }
    watch?.cancel()
  }

  /// Looks whether the registration still stands. One that somebody removed is made again by itself,
  /// when nothing of the container has been removed for a second.
  ///
  /// - Throws: `AppGroupError`: `invalidToken` after `leave()`, `leaseLost`, naming the new one,
  ///   when another process has taken the role over, or what the file system refuses.
  public func confirm() throws {
    if try !stands(orMakeAgain: false) { noteRemoval() }
    switch condition.withLock({ $0.phase }) {
    case .here: return
    case .new, .left:
      throw AppGroupError(
        .invalidToken, "confirm being present", path: presence.path, reason: "it was ended",
        remedy: "enter again")
    case .overtaken(let holder):
      let taker = holder.map { "\($0)" } ?? "another process"
      throw AppGroupError(
        .leaseLost, "confirm being the only one", path: presence.path,
        reason: "\(taker) has taken the role over", remedy: "enter again", holder: holder)
    }
  }

  // MARK: Beginning, and beginning again

  /// Watches first: what is removed from now on is told.
  func begin() throws {
    try watch()
    try presence.place.sweep()
    try condition.withLock { $0.phase = .here(try presence.place.post(record)) }
  }

  /// The same for one that has its role and has entered already.
  func begin(with post: PresencePost) throws {
    condition.withLock { $0.phase = .here(post) }
    try watch()
    // Removed in the moment before.
    if try !stands(orMakeAgain: false) { noteRemoval() }
  }

  private func watch() throws {
    let queue = queue
    let check: @Sendable () -> Void = { [weak self] in self?.checkAfterEvent() }
    // Not on the monitor's thread.
    let watch = try presence.place.directory.watch { queue.async(execute: check) }
    condition.withLock { $0.watch = watch }
  }

  private func checkAfterEvent() {
    do {
      if try !stands(orMakeAgain: false) { noteRemoval() }
    } catch {
      // A full disk, or no descriptor left: nobody can be told, and it may pass.
      makeAgainSoon()
    }
  }

  private func noteRemoval() {
    // Once for each: looks in between are no further removals.
    if !condition.withLock(\.isToBeMadeAgain) {
      ChangeMonitor.shared.noteRemoval(in: presence.container.root.path)
    }
    makeAgainSoon()
  }

  private func makeAgainSoon() {
    let isExpected = condition.withLock { condition in
      defer { condition.isToBeMadeAgain = true }
      return condition.isToBeMadeAgain
    }
    guard !isExpected else { return }
    queue.asyncAfter(deadline: .now() + Self.pause.dispatchInterval) { [weak self] in
      self?.makeAgain()
    }
  }

  private func makeAgain() {
    condition.withLock { $0.isToBeMadeAgain = false }
    guard ChangeMonitor.shared.isSettled(presence.container.root.path) else {
      return makeAgainSoon()
    }
    do {
      _ = try stands(orMakeAgain: true)
    } catch {
      // As above.
      makeAgainSoon()
    }
  }

  /// Whether the registration is there; ends it if its role is gone.
  private func stands(orMakeAgain: Bool) throws -> Bool {
    guard record.identity == .current else { return true }
    return try condition.withLock { condition in
      guard case .here(let post) = condition.phase else { return true }
      if record.isExclusive, let id = try presence.roleID(), id != record.id {
        presence.place.remove(record)
        condition.phase = .overtaken(try presence.place.living(id)?.holder)
        return true
      }
      if try presence.place.isThere(post, record) { return true }
      if orMakeAgain { condition.phase = try madeAgain() }
      return orMakeAgain
    }
  }

  private func madeAgain() throws -> Phase {
    guard record.isExclusive else { return .here(try presence.place.post(record)) }
    switch try presence.takeRole(record, until: .now, overtakes: { _ in false }) {
    case .taken(let post): return .here(post)
    case .busy(let member): return .overtaken(member.holder)
    }
  }
}

extension PresenceDirectory {
  /// Writes a registration, and gives it its name.
  func post(_ record: PresenceRecord) throws -> PresencePost {
    for _ in 0..<interruptionLimit {
      let place = try directory.openOrMake()
      do {
        let post = try PresencePost.stage(record, at: place, in: root)
        try publish(record, at: place)
        return post
      } catch let error as Errno where error == .noSuchFile {
        // The directory was removed meanwhile.
        continue
      }
    }
    throw Errno.noSuchFile
  }

  func publish(_ record: PresenceRecord, at place: borrowing FileDescriptor) throws(Errno) {
    try rename(
      Self.enteringName(record.id), at: place.rawValue, to: Self.memberName(record.id),
      at: place.rawValue)
  }

  func isThere(_ post: PresencePost, _ record: PresenceRecord) throws -> Bool {
    let handle = try root.handle()
    return try post.isNamed(
      directory.relativePath + "/" + Self.memberName(record.id), at: handle.descriptor.rawValue)
  }

  func living(_ id: String) throws -> PresenceMember? {
    try directory.look { try living(id, at: $0) } ?? nil
  }

  /// Removes a registration, and notes that it was the last.
  func remove(_ record: PresenceRecord) {
    do {
      guard let place = try directory.open() else { return }
      note(record, at: place)
      try PresencePost.discard(Self.memberName(record.id), at: place.rawValue)
    } catch {
      // Whatever is in the way: its lock ends now, and so it is gone for everybody.
      return
    }
  }

  private func note(_ record: PresenceRecord, at place: borrowing FileDescriptor) {
    var record = record
    record.ended = Date()
    do {
      // Locked while it is written: a sweeper leaves it.
      let post = try PresencePost.stage(record, at: place, in: root)
      try withExtendedLifetime(post) {
        try rename(
          Self.enteringName(record.id), at: place.rawValue, to: Self.last, at: place.rawValue)
      }
    } catch {
      // A full disk: then nobody knows who was last, and it is gone all the same.
      discardStaged(record, at: place)
    }
  }

  func discardStaged(_ record: PresenceRecord, at place: borrowing FileDescriptor) {
    do throws(Errno) {
      try PresencePost.discard(Self.enteringName(record.id), at: place.rawValue)
    } catch {
      // Swept when it is unlocked.
      return
    }
  }
}
