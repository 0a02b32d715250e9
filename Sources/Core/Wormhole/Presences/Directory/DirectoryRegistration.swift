import Dispatch
import FoundationEssentials
import Synchronization
import WormholePropertyLists
import WormholeSystem

/// The registration of this process in a directory: its file, which is created again when a program
/// has removed it.
final class DirectoryRegistration: PresenceHold {
  private enum Phase {
    case here(PresenceFile)
    case left
    /// Another registration has the role.
    case overtaken(LeaseHolder?)
  }

  private struct Condition {
    var phase: Phase
    /// The number of its last exclusive entering.
    var fence: UInt64
    /// Whether its file does not have the name of a member yet.
    var isEntering: Bool
    var watches: [Watch] = []
    var isToBeMadeAgain = false
    /// Whether a thread is creating it again at this moment.
    var isBeingMade = false
  }

  private let presence: PresenceDirectory
  private let record: PresenceRecord
  private let condition: Mutex<Condition>
  private let queue = Blocking.queue()
  /// Raised when an attempt to create it has ended.
  private let made = WakeLatch()
  private let lossHandlers = LossHandlers()

  /// - Parameters:
  ///   - fence: The number of its entering, if it has the role.
  ///   - isEntering: Whether its process prepares something in the role first.
  init(
    _ presence: PresenceDirectory, _ record: PresenceRecord, _ file: PresenceFile,
    fence: UInt64 = 0, isEntering: Bool = false
  ) {
    self.presence = presence
    self.record = record
    condition = Mutex(Condition(phase: .here(file), fence: fence, isEntering: isEntering))
  }

  deinit { end(asDeath: false) }

  func end(asDeath: Bool) {
    let (watches, file) = condition.withLock { condition -> ([Watch], PresenceFile?) in
      let watches = exchange(&condition.watches, with: [])
      guard case .here(let file) = condition.phase else { return (watches, nil) }
      // Excludes: a check that creates the registration again after this.
      condition.phase = .left
      return (watches, file)
    }
    // An attempt that has begun notices the end, and removes what it has created.
    // Of two threads that wait, one is woken by its end.
    while condition.withLock(\.isBeingMade) { made.block(until: .now + .milliseconds(10)) }
    if let file, record.identity == .current {
      end(file, asDeath: asDeath)
    }
    for watch in watches { watch.cancel() }
  }

  private func end(_ file: PresenceFile, asDeath: Bool) {
    if !asDeath, ChangeMonitor.shared.isSettled(presence.container.root.path) {
      return withExtendedLifetime(file) { presence.remove(record) }
    }
    // In a container that is being removed its file is left to the removing program, which would
    // fail without it (`rm -r`). After an error closing it has the same effect, perhaps a moment later.
    try? file.unlock()
  }

  /// Completes its entering, once.
  private func complete() throws {
    guard condition.withLock({ exchange(&$0.isEntering, with: false) }) else { return }
    try reporting(presence.title.action, path: presence.path) {
      guard let place = try presence.directory.open(),
        try ifPresent(presence.publish(record, at: place)) != nil
      else {
        let taker = try presence.roleID().flatMap {
          $0 == record.id ? nil : try presence.living($0)
        }
        throw presence.title.overtaken(by: taker?.holder, path: presence.path)
      }
    }
  }

  func confirm(until deadline: ContinuousClock.Instant?) throws {
    try complete()
    try look()
    switch condition.withLock({ $0.phase }) {
    case .here: return
    case .left: throw presence.title.ended(path: presence.path)
    case .overtaken(let holder):
      throw presence.title.overtaken(by: holder, path: presence.path)
    }
  }

  var facts: HoldFacts {
    condition.withLock { condition in
      guard case .here(let file) = condition.phase else { return HoldFacts(fence: condition.fence) }
      return HoldFacts(fence: condition.fence, descriptor: file.descriptor)
    }
  }

  // Its watch reports every takeover.
  func onLoss(_ handler: @escaping LossHandlers.Handler) {
    lossHandlers.add(handler)
    if let loss { lossHandlers.report(loss) }
  }

  var loss: WormholeError? {
    do {
      try confirm(until: nil)
      return nil
    } catch let error as WormholeError where error.code == .leaseLost {
      return error
    } catch {
      // Too few descriptors, for example: the next look detects it.
      return nil
    }
  }

  // MARK: Beginning again

  func watch() throws {
    try complete()
    guard condition.withLock(\.watches.isEmpty) else { return }
    try watchFiles()
    // Removed just before.
    try look()
  }

  /// Watches the directory for a role that goes to another process. Without a role only its own
  /// file is watched, so none of hundreds of processes is woken when another one enters or leaves.
  private func watchFiles() throws {
    let queue = queue
    let check: @Sendable () -> Void = { [weak self] in self?.checkAfterEvent() }
    // Not on the monitor's thread.
    let signal: @Sendable () -> Void = { queue.async(execute: check) }
    var watches = [try presence.directory.watch(for: record.isExclusive ? .names : [], signal)]
    if !record.isExclusive,
      let own = try presence.watchMember(record.id, isOwn: true, { _ in signal() })
    {
      watches.append(own)
    }
    condition.withLock { condition in
      // Excludes: a watch that begins after `end`.
      guard case .here = condition.phase else { return }
      swap(&condition.watches, &watches)
    }
    // Those of a file that was there before, if they were kept.
    for watch in watches { watch.cancel() }
  }

  private func checkAfterEvent() {
    // A full disk, or no descriptor left: no caller could get the error, and it may pass.
    if (try? look()) == nil { makeAgainSoon() }
  }

  /// Looks whether a program has removed it; if so, it is soon made again.
  private func look() throws {
    guard try !stands(orMakeAgain: false) else { return }
    // Once for each removal: looks in between are not further removals.
    if !condition.withLock(\.isToBeMadeAgain) {
      ChangeMonitor.shared.noteRemoval(in: presence.container.root.path)
    }
    makeAgainSoon()
  }

  private func makeAgainSoon() {
    guard !condition.withLock({ exchange(&$0.isToBeMadeAgain, with: true) }) else { return }
    ChangeMonitor.shared.whenSettled(presence.container.root.path, on: queue) { [weak self] in
      self?.makeAgain()
    }
  }

  private func makeAgain() {
    condition.withLock { $0.isToBeMadeAgain = false }
    // As above, the error may pass.
    if (try? stands(orMakeAgain: true)) == nil { makeAgainSoon() }
  }

  /// Returns whether the registration exists; ends it if its role is gone.
  private func stands(orMakeAgain: Bool) throws -> Bool {
    guard record.identity == .current else { return true }
    guard case .here(let file) = condition.withLock(\.phase) else { return true }
    let isThere = try presence.isThere(file, record)
    if record.isExclusive, let id = try presence.roleID(), id != record.id,
      !LeaseFault.confirmingUnseen.isActive
    {
      presence.remove(record)
      _ = replace(file, by: .overtaken(try presence.living(id)?.holder))
      return true
    }
    if isThere { return true }
    // It was left meanwhile, which removes it.
    guard case .here(let now) = condition.withLock(\.phase), now === file else { return true }
    guard orMakeAgain,
      condition.withLock({ condition in
        // Excludes: an attempt that begins after `end`.
        guard case .here = condition.phase else { return false }
        condition.isBeingMade = true
        return true
      })
    else { return orMakeAgain }
    defer {
      condition.withLock { $0.isBeingMade = false }
      made.raise()
    }
    let new = try madeAgain()
    if !replace(file, by: new), case .here = new { presence.remove(record) }
    // Its file is another one.
    if !condition.withLock(\.watches.isEmpty) { try watchFiles() }
    return true
  }

  /// - Returns: False if it was left meanwhile.
  private func replace(_ file: PresenceFile, by new: Phase) -> Bool {
    let isReplaced = condition.withLock { condition in
      guard case .here(let current) = condition.phase, current === file else { return false }
      condition.phase = new
      return true
    }
    if isReplaced, case .overtaken(let holder) = new {
      lossHandlers.report(presence.title.overtaken(by: holder, path: presence.path))
    }
    return isReplaced
  }

  private func madeAgain() throws -> Phase {
    guard record.isExclusive else { return .here(try presence.makeFile(record)) }
    switch try presence.takeRole(record, until: .now, overtakes: { _ in false }) {
    case .taken(let file, let fence):
      condition.withLock { $0.fence = fence }
      return .here(file)
    case .busy(let member), .removed(let member): return .overtaken(member.holder)
    }
  }
}

extension PresenceDirectory {
  /// Writes a registration, and gives it its name.
  func makeFile(_ record: PresenceRecord) throws -> PresenceFile {
    for _ in 0..<renameRaceLimit {
      let place = try directory.openOrMake()
      do {
        let file = try PresenceFile.stage(record, at: place, in: root)
        try publish(record, at: place)
        return file
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

  func isThere(_ file: PresenceFile, _ record: PresenceRecord) throws -> Bool {
    let handle = try root.handle()
    return try file.isNamed(
      directory.relativePath + "/" + Self.memberName(record.id), at: handle.descriptor.rawValue)
  }

  package func living(_ id: String) throws -> PresenceMember? {
    try directory.withOpenDirectory { try living(id, at: $0) } ?? nil
  }

  /// Removes a registration, and records it as the last one.
  func remove(_ record: PresenceRecord) {
    // Whatever the obstacle is, its lock ends now, so the registration is gone for all processes.
    guard let place = try? directory.open() else { return }
    note(record, at: place)
    // Its lock ends now in any case.
    _ = try? removeIfPresent(Self.memberName(record.id), at: place.rawValue)
  }

  private func note(_ record: PresenceRecord, at place: borrowing FileDescriptor) {
    var record = record
    record.ended = Date()
    do {
      // Locked while it is written, so that a sweeper leaves it alone.
      let file = try PresenceFile.stage(record, at: place, in: root)
      try withExtendedLifetime(file) {
        try rename(
          Self.enteringName(record.id), at: place.rawValue, to: Self.last, at: place.rawValue)
      }
    } catch {
      // A full disk: the last registration is not recorded, but it has still ended.
      discardStaged(record, at: place)
    }
  }

  func discardStaged(_ record: PresenceRecord, at place: borrowing FileDescriptor) {
    // Leftovers are swept when they are unlocked.
    _ = try? removeIfPresent(Self.enteringName(record.id), at: place.rawValue)
  }
}
