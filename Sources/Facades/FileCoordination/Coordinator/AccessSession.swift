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
  private let conversation: PresenterConversation?
  private let companions: Companions
  private let durability: Durability
  /// The coordinator's own.
  private let presenter: (any FilePresenter)?
  /// Into or out of private copies: presenters hear of them when the copies are published.
  private let moves = Mutex<[ItemMove]>([])

  init(
    grants: [Grant], conversation: PresenterConversation?, companions: Companions,
    durability: Durability, presenter: (any FilePresenter)?
  ) {
    self.presenter = presenter
    self.grants = grants
    self.conversation = conversation
    self.companions = companions
    self.durability = durability
  }

  /// The reason why the access was lost; nil as long as it was not taken over.
  func loss() throws -> FileCoordinationError? {
    for grant in grants {
      if let loss = try grant.access?.loss() { return loss }
    }
    return nil
  }

  /// The cause of an accessor's error: without its copy, because that was taken over, an accessor fails
  /// with an error of its own.
  func cause(of error: any Error) -> any Error {
    grants.compactMap(\.access).lossBehind(error, isAny: true)
  }

  /// Keeps a move that presenters must not hear of yet, because one end of it is a private copy.
  ///
  /// - Returns: false when neither is one of this access.
  func postpone(_ move: ItemMove) -> Bool {
    let (from, to) = (published(move.from), published(move.to))
    guard from != nil || to != nil else { return false }
    moves.withLock { $0.append(ItemMove(from: from ?? move.from, to: to ?? move.to)) }
    return true
  }

  // The public place of a path in a private copy.
  private func published(_ path: String) -> String? {
    for grant in grants where grant.copy != nil {
      guard let location = grant.access?.location else { continue }
      if path == grant.path { return location.text }
      let inside = grant.path + "/"
      if path.hasPrefix(inside) { return location.text + "/" + path.dropFirst(inside.count) }
    }
    return nil
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

  fileprivate func publication(
    of grant: Grant, until deadline: ContinuousClock.Instant
  ) -> ItemPublication? {
    guard let access = grant.access, let claim = access.claim, let copy = grant.copy else {
      return nil
    }
    return ItemPublication(
      access, claim, copy, companions: companions, durability: durability, deadline: deadline)
  }

  fileprivate func finish(_ published: [String: FileStatus?]) {
    conversation?.finish(published: published)
  }

  fileprivate func tellMoves() {
    for move in moves.withLock({ $0 }) {
      PresenterConversation.tellMoved(from: move.from, to: move.to, by: presenter)
    }
  }
}

/// An accessor says that it moved something.
struct ItemMove: Sendable, Hashable {
  let from: String
  let to: String
}

/// Ends an access and publishes what its accessor left, one item after the other.
///
/// What lies deeper comes first: a directory's copy is published with what was published in it.
final class AccessClosing: Waiting {
  private let session: AccessSession
  private let deadline: ContinuousClock.Instant
  private var remaining: [AccessSession.Grant]
  private var current: ItemPublication?
  private var published: [String: FileStatus?] = [:]
  private var isReadingOver = false
  /// What this has come to; it is told after the sites that were left are removed.
  private var result: Result<Void, any Error>?
  private let removal = SiteRemoval()

  init(_ session: AccessSession, until deadline: ContinuousClock.Instant) {
    self.session = session
    self.deadline = deadline
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
        session.tellMoves()
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
    current = current ?? session.publication(of: grant, until: deadline)
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

  private func note(_ change: StagedCopy.Change, at grant: AccessSession.Grant) {
    guard let path = grant.access?.location.text else { return }
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
    session.finish(published)
  }
}
