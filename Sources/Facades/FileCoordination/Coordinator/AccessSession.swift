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
  /// Into or out of private copies: presenters hear of them when the copies are published.
  private let moves = Mutex<[ItemMove]>([])

  init(
    grants: [Grant], conversation: PresenterConversation?, companions: Companions,
    durability: Durability
  ) {
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
    do {
      return try loss() ?? error
    } catch let unknown {
      // Without an answer, the error stays as it is.
      Diagnostics.report(unknown)
      return error
    }
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
      if path == grant.path { return location.path }
      let inside = grant.path + "/"
      if path.hasPrefix(inside) { return location.path + "/" + path.dropFirst(inside.count) }
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

  /// Ends the access and publishes what its accessor left.
  func closing(
    until deadline: ContinuousClock.Instant, for client: PresenterClient
  ) -> AccessClosing {
    let moves = moves.withLock { $0 }
    return AccessClosing(
      grants, durability: durability, conversation: conversation, companions: companions,
      until: deadline
    ) {
      for move in moves {
        PresenterConversation.tellMoved(from: move.from, to: move.to, by: client)
      }
    }
  }
}

/// An accessor says that it moved something.
struct ItemMove: Sendable, Hashable {
  let from: String
  let to: String
}

/// Publishes the items of an access one after the other.
///
/// What lies deeper comes first: a directory's copy is published with what was published in it.
final class AccessClosing: Waiting {
  private var remaining: [AccessSession.Grant]
  private var current: ItemPublication?
  private var published: [String: FileStatus?] = [:]
  private let durability: Durability
  private var conversation: PresenterConversation?
  private let companions: Companions
  private let deadline: ContinuousClock.Instant
  private let tellMoves: () -> Void
  private var isReadingOver = false

  init(
    _ grants: [AccessSession.Grant], durability: Durability, conversation: PresenterConversation?,
    companions: Companions, until deadline: ContinuousClock.Instant,
    whenPublished tellMoves: @escaping () -> Void
  ) {
    self.companions = companions
    self.tellMoves = tellMoves
    remaining = grants.sorted {
      ($0.access?.location.path ?? "") < ($1.access?.location.path ?? "")
    }
    self.durability = durability
    self.conversation = conversation
    self.deadline = deadline
  }

  func step() throws -> WaitingStep<Void> {
    do {
      try endReading()
      while let grant = remaining.last {
        guard let publication = current ?? publication(of: grant) else {
          remaining.removeLast()
          try endInPlace(grant)
          continue
        }
        current = publication
        switch try publication.step() {
        case .wait(let latch, let deadline): return .wait(for: latch, until: deadline)
        case .spin(let pause): return .spin(pause)
        case .done(let result):
          note(result, at: grant)
          current = nil
          remaining.removeLast()
        }
      }
      // Before the reacquirers, which may look for the item.
      tellMoves()
      giveUp()
      return .done(())
    } catch {
      giveUp()
      throw error
    }
  }

  // Its task was cancelled while it waited.
  deinit { giveUp() }

  // Our own readers must not be in the way of our own writers.
  private func endReading() throws {
    guard !isReadingOver else { return }
    isReadingOver = true
    for grant in remaining { grant.snapshot?.remove() }
    for grant in remaining where grant.access?.claim == nil { try grant.access?.endReading() }
  }

  private func publication(of grant: AccessSession.Grant) -> ItemPublication? {
    guard let access = grant.access, let claim = access.claim, let copy = grant.copy else {
      return nil
    }
    return ItemPublication(
      access, claim, copy, companions: companions, durability: durability, deadline: deadline)
  }

  private func endInPlace(_ grant: AccessSession.Grant) throws {
    guard let access = grant.access, let claim = access.claim else { return }
    // No process could take it over before its program had ended, and a later loss does not matter.
    guard !claim.isHandedOn else { return access.end() }
    let isStanding = try claim.isStanding()
    let error = isStanding ? nil : claim.overtaken()
    access.end()
    if let error, access.kind.claim == .inPlace { throw error }
  }

  private func note(_ result: Published, at grant: AccessSession.Grant) {
    guard result.change != .none, let path = grant.access?.location.path else { return }
    published[path] = .some(result.status)
  }

  private func giveUp() {
    // With what it has locked, which may be what is to be removed.
    current = nil
    for grant in remaining { grant.access?.end() }
    remaining = []
    conversation.take()?.finish(published: published)
  }
}
