import AppGroup
import SystemCalls

/// Begins a coordinated access: presenters are asked before anything is held, so that they can
/// coordinate themselves while they answer; then the items are acquired in one canonical order, so
/// that two accesses to several items never wait for each other; then the private copies are made.
final class AccessOpening: SteppedWork {
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
    var demand: ItemDemand
    var requests: [Int]
  }

  private let requests: [AccessRequest]
  private let terms: Terms
  private var items: [Item]?
  private var conversation: PresenterConversation?
  private var acquired: [ItemAccess] = []
  /// Of what was acquired, and of what is waited for.
  private var acquisitions: [ItemAcquisition] = []

  var latch: WakeLatch? {
    acquired.count < acquisitions.count ? acquisitions[acquired.count].latch : nil
  }

  init(_ requests: [AccessRequest], _ terms: Terms) {
    self.requests = requests
    self.terms = terms
  }

  func step() throws -> StepProgress<AccessSession> {
    do {
      let items = try self.items ?? prepare()
      while let item = (self.items ?? items).dropFirst(acquired.count).first {
        let acquisition = acquisition(of: item)
        guard let progress = try step(acquisition, of: item) else { continue }
        switch progress {
        case .wait(let deadline):
          if let directory = acquisition.givesWayTo, try giveUp(inside: directory) { continue }
          return .wait(until: deadline)
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

  // Whoever was overtaken while it copied finds no place for its copy.
  private func cause(of error: any Error) -> any Error {
    guard (error as? FileCoordinationError)?.code == .inputOutput else { return error }
    do {
      return try acquired.compactMap { try $0.loss() }.first ?? error
    } catch let unknown {
      // What cannot be found out explains nothing.
      Diagnostics.report(unknown)
      return error
    }
  }

  /// - Returns: nil when the item has to be acquired in another way.
  private func step(
    _ acquisition: ItemAcquisition, of item: Item
  ) throws -> StepProgress<ItemAccess>? {
    do {
      return try acquisition.step()
    } catch let error as FileCoordinationError
      where error.code == .permissionDenied && item.demand.kind == .sharing
      && item.requests.allSatisfy({ requests[$0].isReading })
    {
      // Where nothing may be made, readers only lock what they read.
      items?[acquired.count].demand = requests[item.requests[0]].demand
      acquisitions.removeLast()
      return nil
    }
  }

  private func prepare() throws -> [Item] {
    var items: [ItemLocation: Item] = [:]
    var demands: [PresenterDemand] = []
    for (index, request) in requests.enumerated() {
      let demand =
        terms.isPurposeShared ? request.demand.amongOthersOfItsPurpose() : request.demand
      let location = try request.location()
      if let presenterDemand = request.presenterDemand(at: location),
        !terms.prepared.contains(location.path)
      {
        demands.append(presenterDemand)
      }
      let known = items[location]
      // Whoever writes an item has the right to read it, too.
      let stronger = known.map { $0.demand.isWeakerThanWriting ? demand : $0.demand } ?? demand
      items[location] = Item(
        location: location, demand: stronger, requests: (known?.requests ?? []) + [index])
    }
    if !demands.isEmpty {
      conversation = try PresenterConversation.begin(
        demands, for: terms.client, until: terms.patience.deadline)
    }
    let ordered = items.values.sorted { ItemLocation.precedes($0.location, $1.location) }
    self.items = ordered
    return ordered
  }

  private func acquisition(of item: Item) -> ItemAcquisition {
    if acquisitions.count > acquired.count { return acquisitions[acquired.count] }
    let acquisition = ItemAcquisition(
      item.location, item.demand, purpose: terms.purpose, term: terms.term,
      patience: terms.patience)
    acquisitions.append(acquisition)
    return acquisition
  }

  // Somebody has claimed the directory's contents, and waits for all that we have in it
  // (Tests/Models/contents.pml, KEEP_OTHERS). It is what was acquired last, for that is the order.
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
      let copy = try makeCopy(access)
      for (position, index) in item.requests.enumerated() {
        let request = requests[index]
        let isFirst = position == 0
        let snapshot =
          request.wantsSnapshot ? try Snapshot.make(of: access, check: check(access)) : nil
        grants[index] = AccessSession.Grant(
          path: path(for: request, at: item.location, access, snapshot),
          access: isFirst ? access : nil,
          copy: isFirst ? copy : nil, snapshot: snapshot)
      }
      // Others may change the item while the copy is read.
      if item.requests.allSatisfy({ requests[$0].wantsSnapshot }) { access.end() }
    }
    return grants.compactMap { $0 }
  }

  private func makeCopy(_ access: ItemAccess) throws -> StagedCopy? {
    guard let claim = access.claim, case .copying(let copying) = access.demand.kind else {
      return nil
    }
    let path = access.location.path
    return try reporting("copy the item", path: path) {
      try access.location.refuseMountPoint(access.demand.action)
      return try StagedCopy.make(copying, of: access.location, in: claim, check: check(access))
    }
  }

  // Copying is work and no wait for others, so no deadline ends it; but it may be given up.
  private func check(_ access: ItemAccess) -> () throws -> Void {
    let (action, path, patience) = (access.demand.action, access.location.path, terms.patience)
    return { try patience.check(action, path: path) }
  }

  private func path(
    for request: AccessRequest, at asked: ItemLocation, _ access: ItemAccess, _ snapshot: Snapshot?
  ) -> String {
    if let snapshot { return snapshot.path }
    if !request.isReading, let claim = access.claim, case .copying = access.demand.kind {
      return claim.copyPath
    }
    // Moved while it was waited for.
    let isMoved = access.location != asked
    return request.wantsRealPath || isMoved ? access.location.path : request.path
  }
}
