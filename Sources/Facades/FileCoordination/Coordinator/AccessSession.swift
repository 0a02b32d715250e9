import AppGroup
import FileClaims
import Synchronization
import SystemCalls

/// A coordinated access that has begun: what is held for each of its items, and what has to be said
/// when it ends.
final class AccessSession: Sendable {
  /// One item of the access.
  struct Grant: Sendable {
    /// Where the accessor finds the item.
    let path: String
    /// Nil for an item that another grant of the same access covers.
    let access: ItemAccess?
    let copy: StagedCopy?
    let snapshot: ReaderCopy?
  }

  let grants: [Grant]
  fileprivate let terms: AccessOpening.Terms
  fileprivate let conversation: PresenterConversation?
  /// Into or out of private copies: presenters hear of them when the copies are published.
  fileprivate let moves = Mutex<[(from: String, to: String)]>([])

  init(
    _ grants: [Grant], _ terms: AccessOpening.Terms, conversation: PresenterConversation?
  ) {
    self.grants = grants
    self.terms = terms
    self.conversation = conversation
  }

  var accesses: [ItemAccess] { grants.compactMap(\.access) }

  /// Keeps a move that presenters must not hear of yet, because one end of it is a private copy.
  ///
  /// - Returns: false when neither is one of this access.
  func postponeMove(from old: String, to new: String) -> Bool {
    let (from, to) = (published(old), published(new))
    guard from != nil || to != nil else { return false }
    moves.withLock { $0.append((from ?? old, to ?? new)) }
    return true
  }

  // The public place of a path in a private copy.
  private func published(_ path: String) -> String? {
    grants.lazy.filter { $0.copy != nil }.compactMap { grant in
      grant.access.flatMap {
        ItemPath(path).moved(from: ItemPath(grant.path), to: $0.location)?.text
      }
    }.first
  }

  /// Ends the access without publishing anything.
  func abandon() {
    let removal = SiteRemoval()
    for grant in grants {
      grant.access?.end(removal)
      grant.snapshot?.remove(removal)
    }
    conversation?.finish(published: [:])
  }
}

/// Ends an access and publishes what its accessor left, one item after the other.
///
/// What lies deeper comes first: a directory's copy is published with what was published in it.
final class AccessClosing: Waiting {
  private let session: AccessSession
  /// A publication is waited for at least `standardWait`, even if the accessor used up the deadline.
  private let deadline: ContinuousClock.Instant
  private var remaining: [AccessSession.Grant]
  private var current: ItemPublication?
  private var published: [ItemPath: FileStatus?] = [:]
  private var isReadingOver = false
  /// What this has come to; it is told after the sites that were left are removed.
  private var result: Result<Void, any Error>?
  private let removal = SiteRemoval()

  init(_ session: AccessSession) {
    self.session = session
    deadline = max(session.terms.patience.deadline, .now + FileCoordinator.standardWait)
    remaining = session.grants.sorted {
      ($0.access?.location.text ?? "") < ($1.access?.location.text ?? "")
    }
  }

  func step() throws -> WaitingStep<Void> {
    if result == nil {
      do {
        let step = try end()
        guard case .done = step else { return step }
        // Before the reacquirers, which may look for the item.
        for move in session.moves.withLock({ $0 }) {
          PresenterConversation.tellMoved(
            from: move.from, to: move.to, by: session.terms.presenter)
        }
        result = .success(())
      } catch {
        result = .failure(error)
      }
      giveUp()
    }
    return try removal.step().then { .done(try result?.get() ?? ()) }
  }

  private func end() throws -> WaitingStep<Void> {
    try endReading()
    guard let grant = remaining.last else { return .done(()) }
    current = current ?? publication(of: grant)
    guard let current else {
      try grant.access?.endInPlace(removal)
      remaining.removeLast()
      return try end()
    }
    return try current.step().then { change in
      note(change, at: grant)
      // With what it has locked, which may be what is to be removed.
      self.current = nil
      grant.access?.end(removal)
      remaining.removeLast()
      return try end()
    }
  }

  // Its task was cancelled while it waited.
  deinit { giveUp() }

  private func publication(of grant: AccessSession.Grant) -> ItemPublication? {
    guard let access = grant.access, let claim = access.claim, let copy = grant.copy else {
      return nil
    }
    return ItemPublication(
      access, claim, copy, companions: session.terms.companions,
      durability: session.terms.durability, deadline: deadline)
  }

  private func note(_ change: StagedCopy.Change, at grant: AccessSession.Grant) {
    guard let path = grant.access?.location else { return }
    switch change {
    case .none: return
    case .removed: published[path] = .some(nil)
    case .replaced(let status): published[path] = .some(status)
    }
  }

  // Our own readers must not be in the way of our own writers.
  private func endReading() throws {
    guard !isReadingOver else { return }
    isReadingOver = true
    for grant in remaining { grant.snapshot?.remove(removal) }
    for grant in remaining where grant.access?.claim == nil {
      try grant.access?.endReading(removal)
    }
  }

  private func giveUp() {
    current = nil
    for grant in remaining { grant.access?.end(removal) }
    remaining = []
    session.conversation?.finish(published: published)
  }
}
