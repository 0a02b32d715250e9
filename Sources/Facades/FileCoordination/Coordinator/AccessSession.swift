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
    for grant in grants {
      grant.access?.end()
      grant.snapshot?.remove()
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

  init(_ session: AccessSession, until deadline: ContinuousClock.Instant) {
    self.session = session
    self.deadline = deadline
    remaining = session.grants.sorted {
      ($0.access?.location.text ?? "") < ($1.access?.location.text ?? "")
    }
  }

  func step() throws -> WaitingStep<Void> {
    do {
      try endReading()
      while let grant = remaining.last {
        current = current ?? session.publication(of: grant, until: deadline)
        switch try current?.step() {
        case nil: try grant.access?.endInPlace()
        case .wait(let latch, let deadline): return .wait(for: latch, until: deadline)
        case .spin(let pause): return .spin(pause)
        case .done(let change):
          note(change, at: grant)
          current = nil
        }
        remaining.removeLast()
      }
      // Before the reacquirers, which may look for the item.
      session.tellMoves()
      giveUp()
      return .done(())
    } catch {
      giveUp()
      throw error
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
    for grant in remaining { grant.snapshot?.remove() }
    for grant in remaining where grant.access?.claim == nil { try grant.access?.endReading() }
  }

  private func giveUp() {
    // With what it has locked, which may be what is to be removed.
    current = nil
    for grant in remaining { grant.access?.end() }
    remaining = []
    session.finish(published)
  }
}
