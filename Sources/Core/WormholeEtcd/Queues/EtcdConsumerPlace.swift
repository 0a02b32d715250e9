import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// `c/<consumer>`: a consumer's right to take and to settle, which ends with it or with the session of
/// its process.
final class EtcdConsumerPlace: ConsumerPlace {
  let store: EtcdQueue
  /// The name of its key.
  let id = Nonce.next()
  let view: EtcdQueueView
  /// The parts of files whose fetching did not end.
  let parts = FetchedParts()
  private let session: EtcdSession
  private let sessionEnd = Mutex<EtcdSession.EndHandler?>(nil)
  private let isEnded = Atomic(false)
  private static let alone = Array("alone".utf8)
  private static let beside = Array("beside".utf8)

  init(
    _ store: EtcdQueue, _ role: ConsumerRole, keepsOrder: Bool,
    until deadline: ContinuousClock.Instant?
  ) throws {
    self.store = store
    let call = store.call(within: deadline)
    session = try call.container.session()
    view = EtcdQueueView(store, own: id, keepsOrder: keepsOrder)
    try register(role, call)
    // Listed before the consumers, so that no directory of a later consumer is in the list.
    let directories = try store.queue.open()?.etcdConsumers() ?? []
    try view.begin(until: call.container.soon)
    let gone = directories.filter { !view.isThere(String($0.dropFirst(Self.prefix.count))) }
    removeDirectories(gone, withFiles: true)
  }

  deinit { end() }

  private static var prefix: String { QueueDirectory.etcdPrefix }
  /// The name of its directory on this machine, which has the files of its taken entries.
  var directory: String { Self.prefix + id }

  private func removeDirectories(_ directories: [String], withFiles: Bool) {
    do {
      guard let place = try store.queue.open() else { return }
      for name in directories {
        if withFiles { try place.keep(in: name, parts) }
        try place.removeEtcdConsumer(name, withFiles: withFiles)
      }
    } catch {
      // The next consumer of this machine tries it again.
      return
    }
  }

  /// A consumer that has the queue alone ends the right of its predecessor.
  private func register(_ role: ConsumerRole, _ store: EtcdQueue) throws {
    let key = store.consumerKey(id)
    let (isAlone, registration, fence) = try role.terms()
    let kind = isAlone ? Self.alone : Self.beside
    while true {
      // One of several leaves the others alone.
      let (items, revision) =
        try isAlone
        ? store.read([store.range(.consumers)]) : ([[]], store.client.cluster.moment.revision)
      let others = items[0].filter { $0.value.starts(with: Self.alone) }
        .prefix(EtcdContainer.maximumOperations / 2)
      let outcome = try store.container.commit(
        EtcdTransaction(if: fence, then: others.map { .delete(.key($0.key)) }),
        .init(
          key: key, base: nil, seen: revision,
          value: kind + Array(" \(Nonce.next()) \(registration)".utf8)),
        lease: session.lease)
      guard outcome.succeeded else { throw store.queue.replaced() }
      if others.count < EtcdContainer.maximumOperations / 2 { return }
    }
  }

  // Its key was created under the condition that the role holds.
  var hasBegunUnderRole: Bool { true }

  /// Holds as long as this consumer was not replaced.
  var fence: EtcdTransaction.Condition { .exists(store.consumerKey(id)).fencing }

  /// Whether it was closed, and there is no consumer now.
  func isClosedWithoutSuccessor(
    until deadline: ContinuousClock.Instant?
  ) throws(EtcdError) -> Bool {
    guard isEnded.load(ordering: .sequentiallyConsistent) else { return false }
    return try store.container.call(within: deadline)
      .read(store.range(.consumers), keysOnly: true).items.isEmpty
  }

  /// Verifies that no other consumer can have this one's batches.
  ///
  /// - Throws: `leaseLost`; `EtcdError` if that is unknown.
  func confirm(until deadline: ContinuousClock.Instant?) throws {
    #if DEBUG
      if EtcdFault.forgettingFence.isActive { return }
    #endif
    do throws(EtcdError) {
      try session.confirm(until: store.container.call(within: deadline).soon)
    } catch {
      guard error.code == .leaseGone else { throw error }
      throw store.queue.replaced()
    }
    let isEnded = isEnded.load(ordering: .sequentiallyConsistent)
    guard try isEnded ? isClosedWithoutSuccessor(until: deadline) : view.isThere(id) else {
      throw store.queue.replaced()
    }
  }

  func isIdle() throws -> Bool {
    let found = try store.client.read(
      [.init(store.range(.claims)), .init(store.range(.entries), keysOnly: true)],
      until: store.container.soon
    ).items
    let (claims, entries) = (found[0], found[1])
    let owners = claims.map { BatchClaim($0.value).consumer }
    let taken = Set(claims.compactMap { store.batch($0.key) })
    return !owners.contains(id)
      && entries.allSatisfy { store.batch($0.key).map { taken.contains($0) } ?? true }
  }

  func watch(_ signal: @escaping @Sendable () -> Void) -> [any Cancelling] {
    view.onNews(signal)
    sessionEnd.withLock { $0 = session.onEnd(signal) }
    return []
  }

  // No program removes keys.
  func noteLoss() {}

  func end() {
    guard !isEnded.exchange(true, ordering: .sequentiallyConsistent) else { return }
    view.cancel()
    sessionEnd.withLock { $0 = nil }
    // Files whose entries have not ended can still be claimed, until another process consumes.
    removeDirectories([directory], withFiles: false)
    // Its batches go to the next consumer, so this is done before it returns, if possible.
    let (store, key) = (store, store.consumerKey(id))
    session.insist { deadline in
      _ = try store.container.until(deadline).repeating(
        .init(if: [.exists(key)], then: [.delete(.key(key))]))
    }
  }
}

extension ConsumerRole {
  /// Whether it has the queue alone, its registration, and the condition of its role. After its
  /// beginning its own key replaces that condition.
  fileprivate func terms() throws -> (
    isAlone: Bool, registration: String, fence: [EtcdTransaction.Condition]
  ) {
    switch self {
    case .alone(let registration): (true, registration.id, try registration.conditions)
    case .worker(let registration, let gate):
      (false, registration.id, try registration.conditions + gate.conditions)
    // The database has no room, not even for a session.
    case .unregistered(let error): throw error
    }
  }
}
