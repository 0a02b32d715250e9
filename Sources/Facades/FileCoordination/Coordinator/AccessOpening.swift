import AppGroup
import FileClaims
import SystemCalls

/// Begins a coordinated access: presenters are asked before anything is held, so that they can
/// coordinate themselves while they answer; then the items are acquired in one canonical order, so
/// that two accesses to several items never wait for each other; then the private copies are made.
final class AccessOpening: Waiting {
  /// How the access is made.
  struct Terms: Sendable {
    let presenter: (any FilePresenter)?
    let purpose: String
    /// Whether other processes may have accesses of the same purpose.
    var isPurposeShared = false
    var companions = Companions(mayExist: false)
    let term: Duration
    let patience: Patience
    let durability: Durability
    /// Paths whose presenters have been asked already.
    var prepared: Set<String> = []
  }

  /// One location of the access, and which requests it serves.
  private struct Item {
    let location: ItemPath
    var kind: AccessKind
    var requests: [Int]
    var acquisition: ItemAcquisition?
    /// Nil as long as it is not acquired.
    var access: ItemAccess?
  }

  private let requests: [AccessRequest]
  private let terms: Terms
  private var isPrepared = false
  /// In their canonical order: the first ones are acquired.
  private var items: [Item] = []
  private var conversation: PresenterConversation?

  private var acquired: [ItemAccess] { items.compactMap(\.access) }

  init(_ requests: [AccessRequest], _ terms: Terms) {
    self.requests = requests
    self.terms = terms
  }

  func step() throws -> WaitingStep<AccessSession> {
    do {
      if !isPrepared { try prepare() }
      switch try conversation?.step() {
      case .done, nil: break
      case .wait(let latch, let deadline): return .wait(for: latch, until: deadline)
      case .spin(let pause): return .spin(pause)
      }
      while let next = items.firstIndex(where: { $0.access == nil }) {
        let acquisition = acquisition(of: next)
        switch try acquisition.step() {
        case .wait(let latch, let deadline):
          if let directory = acquisition.givesWayTo, try giveUp(inside: directory) { continue }
          return .wait(for: latch, until: deadline)
        case .spin(let pause): return .spin(pause)
        case .done(let access): items[next].access = access
        }
      }
      let grants = try makeGrants()
      items = []
      return .done(
        AccessSession(
          grants: grants, conversation: conversation.take(), companions: terms.companions,
          durability: terms.durability, presenter: terms.presenter))
    } catch {
      let cause = acquired.lossBehind(error)
      giveUp()
      throw cause
    }
  }

  // Its task was cancelled while it waited.
  deinit { giveUp() }

  private func giveUp() {
    for item in items {
      if let access = item.access { access.end() } else { item.acquisition?.giveUp() }
    }
    items = []
    conversation.take()?.finish(published: [:])
  }

  private func prepare() throws {
    isPrepared = true
    var items: [ItemPath: Item] = [:]
    var demands: [PresenterDemand] = []
    for (index, request) in requests.enumerated() {
      let location = try request.location()
      if let presenterDemand = request.presenterDemand(at: location),
        !terms.prepared.contains(location.text)
      {
        demands.append(presenterDemand)
      }
      var item = items[location] ?? Item(location: location, kind: request.kind, requests: [])
      // Access to write an item includes reading it.
      if item.kind.isWeakerThanWriting { item.kind = request.kind }
      item.requests.append(index)
      items[location] = item
    }
    if !demands.isEmpty {
      conversation = PresenterConversation(
        demands, for: terms.presenter, until: terms.patience.deadline)
    }
    self.items = items.values.sorted { ItemPath.precedes($0.location, $1.location) }
  }

  private func acquisition(of index: Int) -> ItemAcquisition {
    if let known = items[index].acquisition { return known }
    let acquisition = ItemAcquisition(
      items[index].location, items[index].kind, tellsPurpose: terms.isPurposeShared,
      purpose: terms.purpose, term: terms.term, patience: terms.patience)
    items[index].acquisition = acquisition
    return acquisition
  }

  // Another process has claimed the directory's contents, and waits for all of this access in it
  // (Tests/Models/contents.pml, KEEP_OTHERS). It was acquired last, because that is the order.
  private func giveUp(inside directory: ItemPath) throws -> Bool {
    var hasGivenUp = false
    while let last = items.lastIndex(where: { $0.access != nil }),
      let access = items[last].access, directory.contains(access.location)
    {
      items[last].access = nil
      try items[last].acquisition?.beginAgain(givingUp: access)
      hasGivenUp = true
    }
    return hasGivenUp
  }

  private func makeGrants() throws -> [AccessSession.Grant] {
    var grants: [AccessSession.Grant?] = requests.map { _ in nil }
    for item in items {
      guard let access = item.access else { continue }
      let place = placeInCopy(access)
      var copy = place == nil ? try StagedCopy.make(of: access, check: check(access)) : nil
      for index in item.requests {
        let request = requests[index]
        let snapshot =
          request.wantsSnapshot ? try ReaderCopy.make(of: access, check: check(access)) : nil
        let own = snapshot?.path ?? path(for: request, at: item.location, access)
        let isFirst = index == item.requests.first
        grants[index] = AccessSession.Grant(
          path: request.kind.isReading ? own : place ?? own, access: isFirst ? access : nil,
          copy: copy.take(), snapshot: snapshot)
      }
      // Others may change the item while the copy is read.
      if item.requests.allSatisfy({ requests[$0].wantsSnapshot }) { access.end() }
    }
    return grants.compactMap { $0 }
  }

  // Where an item is in the copy of a directory that this access changes as well: changed in both
  // copies, the one would be a conflict with the other.
  private func placeInCopy(_ access: ItemAccess) -> String? {
    guard access.kind.copyMode != nil else { return nil }
    let directory = acquired.first {
      $0.kind.copiesContent && $0.location.contains(access.location)
    }
    guard let directory, let claim = directory.claim else { return nil }
    return access.location.moved(from: directory.location, to: ItemPath(claim.copyPath))?.text
  }

  // Copying does not wait for others, so no deadline ends it; but it may be cancelled.
  private func check(_ access: ItemAccess) -> () throws -> Void {
    let (action, path, patience) = (access.kind.action, access.location.text, terms.patience)
    return { try patience.check(action, path: path) }
  }

  private func path(
    for request: AccessRequest, at asked: ItemPath, _ access: ItemAccess
  ) -> String {
    if !request.kind.isReading, let claim = access.claim, access.kind.isOnCopy {
      return claim.copyPath
    }
    // Moved while it was waited for.
    let isMoved = access.location != asked
    return request.wantsRealPath || isMoved ? access.location.text : request.path
  }
}
