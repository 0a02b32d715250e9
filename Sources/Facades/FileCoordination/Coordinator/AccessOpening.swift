import AppGroup
import FileClaims
import SystemCalls

/// Begins a coordinated access: presenters are asked before anything is held, so that they can
/// coordinate themselves while they answer; then the items are acquired in one canonical order, so
/// that two accesses to several items never wait for each other; then the private copies are made.
final class AccessOpening: Waiting {
  /// How the access is made.
  struct Terms: Sendable {
    let client: PresenterClient
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
    let location: ItemLocation
    var kind: AccessKind
    /// Whether the purpose is said where others of the same purpose see it.
    var tellsPurpose: Bool
    var requests: [Int]
  }

  private let requests: [AccessRequest]
  private let terms: Terms
  private var items: [Item]?
  private var conversation: PresenterConversation?
  private var acquired: [ItemAccess] = []
  /// Of what was acquired, and of what is waited for.
  private var acquisitions: [ItemAcquisition] = []

  init(_ requests: [AccessRequest], _ terms: Terms) {
    self.requests = requests
    self.terms = terms
  }

  func step() throws -> WaitingStep<AccessSession> {
    do {
      let items = try self.items ?? prepare()
      if let waiting = try waitForPresenters() { return waiting }
      while let item = (self.items ?? items).dropFirst(acquired.count).first {
        let acquisition = acquisition(of: item)
        guard let progress = try step(acquisition, of: item) else { continue }
        switch progress {
        case .wait(let latch, let deadline):
          if let directory = acquisition.givesWayTo, try giveUp(inside: directory) { continue }
          return .wait(for: latch, until: deadline)
        case .spin(let pause): return .spin(pause)
        case .done(let access): acquired.append(access)
        }
      }
      let grants = try makeGrants(items)
      acquired = []
      acquisitions = []
      return .done(
        AccessSession(
          grants: grants, conversation: conversation.take(), companions: terms.companions,
          durability: terms.durability))
    } catch {
      let cause = cause(of: error)
      giveUp()
      throw cause
    }
  }

  // Its task was cancelled while it waited.
  deinit { giveUp() }

  private func giveUp() {
    if acquired.count < acquisitions.count { acquisitions[acquired.count].giveUp() }
    for access in acquired { access.end() }
    acquired = []
    acquisitions = []
    conversation.take()?.finish(published: [:])
  }

  // An access that was overtaken while it copied finds no place for its copy.
  private func cause(of error: any Error) -> any Error {
    guard (error as? FileCoordinationError)?.code == .inputOutput else { return error }
    do {
      return try acquired.compactMap { try $0.loss() }.first ?? error
    } catch let unknown {
      // Without an answer, the error stays as it is.
      Diagnostics.report(unknown)
      return error
    }
  }

  /// - Returns: nil when the item has to be acquired in another way.
  private func step(
    _ acquisition: ItemAcquisition, of item: Item
  ) throws -> WaitingStep<ItemAccess>? {
    do {
      return try acquisition.step()
    } catch let error as FileCoordinationError
      where error.code == .permissionDenied && item.kind.isReading && item.tellsPurpose
    {
      // Where nothing may be made, readers only lock what they read.
      items?[acquired.count].tellsPurpose = false
      acquisitions.removeLast()
      return nil
    }
  }

  private func waitForPresenters() throws -> WaitingStep<AccessSession>? {
    switch try conversation?.step() {
    case .done, nil: nil
    case .wait(let latch, let deadline): .wait(for: latch, until: deadline)
    case .spin(let pause): .spin(pause)
    }
  }

  private func prepare() throws -> [Item] {
    var items: [ItemLocation: Item] = [:]
    var demands: [PresenterDemand] = []
    for (index, request) in requests.enumerated() {
      let location = try request.location()
      if let presenterDemand = request.presenterDemand(at: location),
        !terms.prepared.contains(location.path)
      {
        demands.append(presenterDemand)
      }
      let known = items[location]
      // Access to write an item includes reading it.
      let stronger = known.map(\.kind).flatMap { $0.isWeakerThanWriting ? nil : $0 }
      items[location] = Item(
        location: location, kind: stronger ?? request.kind, tellsPurpose: terms.isPurposeShared,
        requests: (known?.requests ?? []) + [index])
    }
    if !demands.isEmpty {
      conversation = PresenterConversation(
        demands, for: terms.client, until: terms.patience.deadline)
    }
    let ordered = items.values.sorted { ItemLocation.precedes($0.location, $1.location) }
    self.items = ordered
    return ordered
  }

  private func acquisition(of item: Item) -> ItemAcquisition {
    if acquisitions.count > acquired.count { return acquisitions[acquired.count] }
    let acquisition = ItemAcquisition(
      item.location, item.kind, tellsPurpose: item.tellsPurpose, purpose: terms.purpose,
      term: terms.term, patience: terms.patience)
    acquisitions.append(acquisition)
    return acquisition
  }

  // Another process has claimed the directory's contents, and waits for all of this access in it
  // (Tests/Models/contents.pml, KEEP_OTHERS). It was acquired last, because that is the order.
  private func giveUp(inside directory: ItemLocation) throws -> Bool {
    var hasGivenUp = false
    while let last = acquired.last, last.location.isInside(directory) {
      acquired.removeLast()
      try acquisitions[acquired.count].beginAgain(givingUp: last)
      hasGivenUp = true
    }
    return hasGivenUp
  }

  private func makeGrants(_ items: [Item]) throws -> [AccessSession.Grant] {
    var grants: [AccessSession.Grant?] = requests.map { _ in nil }
    for (item, access) in zip(items, acquired) {
      let place = placeInCopy(access)
      let copy = place == nil ? try makeCopy(access) : nil
      for (position, index) in item.requests.enumerated() {
        let request = requests[index]
        let isFirst = position == 0
        let snapshot =
          request.wantsSnapshot ? try ReaderCopy.make(of: access, check: check(access)) : nil
        grants[index] = AccessSession.Grant(
          path: request.kind.isReading
            ? path(for: request, at: item.location, access, snapshot)
            : place ?? path(for: request, at: item.location, access, snapshot),
          access: isFirst ? access : nil,
          copy: isFirst ? copy : nil, snapshot: snapshot)
      }
      // Others may change the item while the copy is read.
      if item.requests.allSatisfy({ requests[$0].wantsSnapshot }) { access.end() }
    }
    return grants.compactMap { $0 }
  }

  private func makeCopy(_ access: ItemAccess) throws -> StagedCopy? {
    guard let claim = access.claim, access.kind.isOnCopy else { return nil }
    let path = access.location.path
    return try reporting("copy the item", path: path) {
      try access.location.refuseMountPoint(access.kind.action)
      return try StagedCopy.make(
        access.kind.copyMode, of: access.location, in: claim, check: check(access))
    }
  }

  // Where an item is in the copy of a directory that this access changes as well: changed in both
  // copies, the one would be a conflict with the other.
  private func placeInCopy(_ access: ItemAccess) -> String? {
    guard access.kind.copyMode != nil else { return nil }
    let directory = acquired.first {
      $0.kind.copiesContent && access.location.isInside($0.location)
    }
    guard let directory, let claim = directory.claim else { return nil }
    let inside = access.location.path.utf8.dropFirst(directory.location.path.utf8.count)
    return claim.copyPath + String(decoding: inside, as: UTF8.self)
  }

  // Copying does not wait for others, so no deadline ends it; but it may be cancelled.
  private func check(_ access: ItemAccess) -> () throws -> Void {
    let (action, path, patience) = (access.kind.action, access.location.path, terms.patience)
    return { try patience.check(action, path: path) }
  }

  private func path(
    for request: AccessRequest, at asked: ItemLocation, _ access: ItemAccess,
    _ snapshot: ReaderCopy?
  ) -> String {
    if let snapshot { return snapshot.path }
    if !request.kind.isReading, let claim = access.claim, access.kind.isOnCopy {
      return claim.copyPath
    }
    // Moved while it was waited for.
    let isMoved = access.location != asked
    return request.wantsRealPath || isMoved ? access.location.path : request.path
  }
}
