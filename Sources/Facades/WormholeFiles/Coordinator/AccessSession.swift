import FoundationEssentials
import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

/// Begins a coordinated access. Presenters are asked before anything is held, so that they can
/// coordinate themselves while they answer. Then the items are acquired in one canonical order, so
/// that two accesses to several items never wait for each other; then the private copies are made.
final class AccessOpening: Waiting {
  /// One location of the access, and the requests for it.
  private struct Item {
    let location: ItemPath
    let requests: [Int]
    let acquisition: ItemAcquisition
    /// Nil until it is acquired.
    var access: ItemAccess?
  }

  private let requests: [AccessRequest]
  private let terms: AccessTerms
  private let coordinator: FileCoordinator
  /// In canonical order: the first ones are acquired. Empty before presenters are asked.
  private var items: [Item] = []
  private var conversation: PresenterConversation?

  private var acquired: [ItemAccess] { items.compactMap(\.access) }

  init(_ requests: [AccessRequest], under terms: AccessTerms, for coordinator: FileCoordinator) {
    self.requests = requests
    self.terms = terms
    self.coordinator = coordinator
  }

  func step() throws -> WaitingStep<AccessSession> {
    do {
      return try begin()
    } catch {
      let cause = acquired.lossBehind(error)
      giveUp()
      throw cause
    }
  }

  private func begin() throws -> WaitingStep<AccessSession> {
    if items.isEmpty { try prepare() }
    guard let conversation else { return try acquire() }
    return try conversation.step().then(acquire)
  }

  private func acquire() throws -> WaitingStep<AccessSession> {
    guard let next = items.firstIndex(where: { $0.access == nil }) else {
      if let session = try makeSession() { return .done(session) }
      try acquireAgain(items.indices)
      return try acquire()
    }
    let acquisition = items[next].acquisition
    acquisition.otherPlaces = items.indices.filter { $0 != next }
      .map { items[$0].access?.location ?? items[$0].location }
    let step = try acquisition.step()
    if let first = try firstToGiveUp(after: step, of: acquisition) {
      acquisition.giveUp()
      try acquireAgain(first..<next)
      return try acquire()
    }
    return try step.then { access in
      items[next].access = access
      return try acquire()
    }
  }

  private func acquireAgain(_ indices: Range<Int>) throws {
    for index in indices.reversed() {
      guard let access = items[index].access.take() else { continue }
      try items[index].acquisition.beginAgain(givingUp: access)
    }
  }

  // Its task was cancelled while it waited.
  deinit { giveUp() }

  private func giveUp() {
    for item in items {
      if let access = item.access { access.end() } else { item.acquisition.giveUp() }
    }
    items = []
    conversation.take()?.finish(published: [:])
  }

  private func prepare() throws {
    let found = try requests.map { try $0.find() }
    let moves = requests.contains { $0.kind == .moving }
    let coordinated = requests.indices.filter { found[$0] != nil }
    let served = Dictionary(grouping: coordinated) { found[$0]?.place ?? ItemPath("") }
    items = served.sorted { ItemPath.precedes($0.key, $1.key) }.map { location, indices in
      let kinds = indices.map { requests[$0].kind }
      // Access to write an item includes reading and sharing it.
      let strongest = kinds.first { !$0.isReading && $0 != .sharing } ?? kinds[kinds.count - 1]
      let kind = moves && strongest == .replacing ? .receiving : strongest
      return Item(
        location: location, requests: indices,
        acquisition: ItemAcquisition(
          location, kind, item: found[indices[0]]?.item, under: terms))
    }
    let demands = zip(requests, found).compactMap { request, found in
      found.flatMap { request.presenterDemand(at: $0.place) }
        .flatMap { coordinator.isPrepared($0) ? nil : $0 }
    }
    conversation = PresenterConversation.ifNeeded(
      demands, for: coordinator.filePresenter, under: terms)
  }

  /// Returns the first item to acquire again, with all that follow it in the order, before this
  /// access waits for another item; nil if there is none, or it does not wait.
  private func firstToGiveUp(
    after step: WaitingStep<ItemAccess>, of acquisition: ItemAcquisition
  ) throws -> Int? {
    if case .done = step { return nil }
    // Another process keeps the directory's contents, and waits for all parts of this access in
    // it (Tests/Models/contents.pml, KEEP_OTHERS).
    if let directory = acquisition.givesWayTo,
      let first = items.firstIndex(where: { item in
        item.access.map { directory.contains($0.location) } ?? false
      })
    {
      return first
    }
    // While this process was stopped, another one took the item over, and may have moved it to the
    // place that this access waits for. Its own lock is on it.
    return try items.firstIndex { try $0.access?.loss() != nil }
  }

  /// - Returns: nil if others have taken an item over meanwhile: its accessor must not begin.
  private func makeSession() throws -> AccessSession? {
    var urls = requests.map(\.url)
    var granted: [AccessSession.Item] = []
    var snapshots: [ReaderCopy] = []
    for item in items {
      guard let access = item.access else { continue }
      let place = placeInCopy(access)
      let showsItem = item.requests.contains { requests[$0].writingOptions.contains(.showingItem) }
      let copy =
        place == nil
        ? try StagedCopy(
          of: access, isFresh: items.count == 1, showsItem: showsItem, check: terms.check(access))
        : nil
      granted.append((access, copy))
      for index in item.requests {
        let request = requests[index]
        var path = path(for: request, at: item.location, access)
        if request.wantsSnapshot {
          let snapshot = try reporting("copy the item", path: access.location.text) {
            try ReaderCopy.make(of: access, check: terms.check(access))
          }
          snapshots.append(snapshot)
          path = snapshot.path
        } else if let place, !request.kind.isReading {
          path = place
        }
        // Comparing bytes takes thousands of instructions.
        let isAsAsked =
          path.utf8.count == request.path.utf8.count
          && path.utf8.elementsEqual(request.path.utf8)
        if !isAsAsked || !request.url.isFileURL {
          // A relative URL is resolved in a directory only if its URL ends with a slash.
          let isDirectory = request.url.hasDirectoryPath && !request.wantsSnapshot
          urls[index] = URL(
            filePath: path, directoryHint: isDirectory ? .isDirectory : .inferFromPath)
        }
      }
      // Others may change the item while the copy is read.
      if item.requests.allSatisfy({ requests[$0].wantsSnapshot }) { access.end() }
    }
    guard try acquired.allSatisfy({ try $0.entry?.isLost() != true }) else {
      for snapshot in snapshots { snapshot.remove() }
      return nil
    }
    items = []
    conversation?.accessBegins()
    return AccessSession(
      items: granted, urls: urls, snapshots: snapshots, terms: terms,
      presenter: coordinator.filePresenter, conversation: conversation.take())
  }

  // The item's path in the copy of a directory that this access also changes: if both copies were
  // changed, each would be in conflict with the other.
  private func placeInCopy(_ access: ItemAccess) -> String? {
    guard access.kind.copyMode != nil else { return nil }
    let directory = items.lazy.compactMap(\.access).first {
      $0.kind.copyMode == .copy && $0.location.contains(access.location)
    }
    guard let directory, let entry = directory.entry else { return nil }
    return access.location.moved(from: directory.location, to: ItemPath(entry.copyPath))?.text
  }

  private func path(
    for request: AccessRequest, at asked: ItemPath, _ access: ItemAccess
  ) -> String {
    if !request.kind.isReading, let entry = access.entry, access.kind.isOnCopy {
      return entry.copyPath
    }
    // It was moved during the wait.
    let isMoved = access.location != asked
    return request.wantsRealPath || isMoved ? access.location.text : request.path
  }
}

/// A coordinated access that has begun: what it holds for each of its items, and the reports to
/// make when it ends.
struct AccessSession: Sendable {
  typealias Item = (access: ItemAccess, copy: StagedCopy?)

  fileprivate let items: [Item]
  /// The URLs for the accessor; as the caller gave them, if they name the real place.
  let urls: [URL]
  fileprivate let snapshots: [ReaderCopy]
  fileprivate let terms: AccessTerms
  fileprivate let presenter: (any FilePresenter)?
  fileprivate let conversation: PresenterConversation?

  var accesses: [ItemAccess] { items.map(\.access) }

  /// Keeps a move that presenters must not learn of yet, because one end of it is a private copy.
  ///
  /// - Returns: false if neither end is a private copy of this access.
  func postponeMove(from old: String, to new: String) -> Bool {
    let (from, to) = (published(old), published(new))
    guard from != nil || to != nil else { return false }
    terms.moves.withLock { $0.append((from ?? old, to ?? new)) }
    return true
  }

  /// Where the accessor finds an item that it is changing; nil for any other item.
  func placeInCopy(of item: ItemPath) -> ItemPath? {
    items.lazy.compactMap { access, copy in
      guard let copy else { return nil }
      let whole = ItemPath(copy.entry.copyPath)
      let isThere = access.kind.copyMode != nil || statusIfVisible(whole.text) != nil
      guard isThere else { return nil }
      return item == access.location ? whole : item.moved(from: access.location, to: whole)
    }.first
  }

  // The public place of a path in a private copy, or of the item that has one.
  func published(_ path: String) -> String? {
    let path = ItemPath(path)
    return items.lazy.compactMap { item in
      guard let copy = item.copy else { return nil }
      return path == item.access.location
        ? path.text
        : path.moved(from: ItemPath(copy.entry.copyPath), to: item.access.location)?.text
    }.first
  }

  /// Ends the access without publishing anything.
  func abandon() {
    for access in accesses { access.end() }
    for snapshot in snapshots { snapshot.remove() }
    conversation?.finish(published: [:])
  }
}

/// Ends an access and publishes its accessor's changes, one item after another.
///
/// Deeper items come first, so that a directory's copy is published with its published contents.
final class AccessClosing: Waiting {
  private let session: AccessSession
  /// A publication waits at least `standardWait`, even if the accessor used up the deadline.
  private let deadline: ContinuousClock.Instant
  /// In the order in which they were acquired.
  private var remaining: [AccessSession.Item]
  private var current: ItemPublication?
  private var published: [ItemPath: FileStatus?] = [:]
  private var isReadingOver = false

  init(_ session: AccessSession) {
    self.session = session
    deadline = max(session.terms.deadline, .now + FileCoordinator.standardWait)
    remaining = session.items
  }

  func step() throws -> WaitingStep<Void> {
    do {
      let step = try end()
      guard case .done = step else { return step }
      // Before the reacquirers, which may look for the item.
      for move in session.terms.moves.withLock({ $0 }) {
        PresenterConversation.reportMove(from: move.from, to: move.to, by: session.presenter)
      }
      giveUp()
      return step
    } catch {
      if current != nil, let item = remaining.popLast() {
        if let copy = (error as? WormholeError)?.keptCopy {
          KeptCopies(item: item.access.location).report(.gained, copy)
        }
        item.access.end()
      }
      // The accessor has worked on these, too.
      for item in remaining {
        if let copy = item.copy?.keep() {
          KeptCopies(item: item.access.location).report(.gained, copy)
        }
      }
      giveUp()
      throw error
    }
  }

  private func end() throws -> WaitingStep<Void> {
    try endReading()
    guard let (access, copy) = remaining.last else { return .done(()) }
    guard let copy else {
      try endInPlace(access)
      remaining.removeLast()
      return try end()
    }
    let publication =
      current
      ?? ItemPublication(
        of: copy, by: access, under: session.terms, until: deadline,
        isReported: session.conversation != nil)
    current = publication
    return try publication.step().then { change in
      switch change {
      case .none: break
      case .removed: published[access.location] = .some(nil)
      case .replaced(let status): published[access.location] = .some(status)
      }
      // With its locked item, which may be the one to remove.
      current = nil
      access.end()
      remaining.removeLast()
      return try end()
    }
  }

  private func endInPlace(_ access: ItemAccess) throws {
    guard access.kind == .locking else { return try access.endInPlace() }
    let location = access.location
    let status = try reporting(access.kind.action, path: location.text) {
      let status = try location.status()
      if let status, session.terms.durability == .durable {
        let parent = try location.openParent()
        try TreeSynchronization.run(location.name, status, at: parent.rawValue)
      }
      return status
    }
    try access.endInPlace()
    published[location] = .some(status)
  }

  // Its task was cancelled while it waited.
  deinit { giveUp() }

  // Our own readers must not block our own writers.
  private func endReading() throws {
    guard !isReadingOver else { return }
    isReadingOver = true
    for snapshot in session.snapshots { snapshot.remove() }
    for item in remaining where item.access.entry == nil { try item.access.endReading() }
  }

  private func giveUp() {
    current = nil
    for item in remaining { item.access.end() }
    remaining = []
    session.conversation?.finish(published: published)
  }
}
