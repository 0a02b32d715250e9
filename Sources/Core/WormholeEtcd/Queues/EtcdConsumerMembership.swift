import Dispatch
import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// `c/<consumer>`: a consumer's right to take and to settle; it ends with the consumer or with its
/// process's session.
final class EtcdConsumerMembership: ConsumerMembership, EtcdCompanion {
  let store: EtcdQueue
  /// The name of its key.
  let id = Nonce.next()
  let view: EtcdQueueView
  private let isAlone: Bool
  /// The session of its key; nil before it has begun.
  private let session = Mutex<EtcdSession?>(nil)
  /// The consumers and taken batches, and the waiting ones, as its beginning has found them.
  private let found = Mutex<EtcdQueueView.ReadKeys?>(nil)
  /// A waiting batch, and how it is taken; with the batch itself once it was read.
  typealias First = (name: EntryFile, commitRecord: EtcdContainer.CommitRecord, item: KeyValue?)
  /// The batch that it takes in the transaction by which it begins.
  private let first = Mutex<First?>(nil)
  /// Returns the registration with which it ends; nil if there was no room for it.
  let registration = Mutex<@Sendable () -> EtcdRegistration?> { nil }
  /// The directories of consumers on this machine, from before its beginning.
  private let directories: [String]
  private let sessionEnd = Mutex<EtcdSession.EndHandler?>(nil)
  private let isEnded = Atomic(false)
  private let isLeaving = Atomic(false)
  private static let alone = Array("alone".utf8)
  private static let beside = Array("beside".utf8)

  init(_ store: EtcdQueue, isAlone: Bool) {
    self.store = store
    self.isAlone = isAlone
    view = EtcdQueueView(store, own: id)
    // Listed before the consumers, so that no directory of a later consumer is in the list.
    // After an error the next consumer of this machine removes them.
    directories = (try? store.queue.open()?.etcdConsumers()) ?? []
  }

  // MARK: Its beginning

  var key: [UInt8] { store.consumerKey(id) }

  func steps(with record: PresenceRecord, lease: Int64) -> EtcdTransaction {
    let value = (isAlone ? Self.alone : Self.beside) + Array(" \(Nonce.next()) \(record.id)".utf8)
    var steps = EtcdTransaction(
      if: [.absent(key)], then: [.put(key: key, value: value, lease: lease)])
    if let (name, commit, _) = first.withLock(\.self) {
      let entry = store.entryKey(name)
      steps.conditions += commit.conditions + [.exists(entry)]
      steps.operations += [.put(key: commit.key, value: commit.value), .read(.key(entry))]
    }
    steps.operations += EtcdQueueView.look(at: store.prefix).operations
    return steps
  }

  func entered(_ session: EtcdSession, _ outcome: EtcdTransaction.Outcome?) {
    self.session.withLock { $0 = session }
    found.withLock { $0 = outcome.flatMap { view.look(in: $0) } }
    first.withLock { $0?.item = outcome?.results.flatMap(\.items).first }
  }

  func refused() { begin(with: nil) }

  /// Begins with a batch, unless it no longer waits then.
  func begin(with first: First?) { self.first.withLock { $0 = first } }

  /// Returns the batch with which it was to begin; once.
  func takeFirst() -> First? { first.withLock { $0.take() } }

  /// Looks at the queue, after its key was put.
  func begin(until deadline: ContinuousClock.Instant?) throws {
    let call = store.call(within: deadline)
    var keys = found.withLock { exchange(&$0, with: nil) }
    if isAlone,
      try endFormer(in: keys?.items[0] ?? call.container.read(call.range(.consumers)).items, call)
    {
      keys = nil
    }
    try view.begin(with: keys, until: call.container.callDeadline)
    let gone = directories.filter { !view.isThere(String($0.dropFirst(Self.prefix.count))) }
    removeDirectories(gone, withFiles: true)
  }

  /// A consumer that has the queue alone ends the right of its predecessors; one of several leaves
  /// the others alone.
  ///
  /// - Returns: Whether there were any.
  private func endFormer(in items: [KeyValue], _ store: EtcdQueue) throws -> Bool {
    let former = items.filter {
      store.part($0.key)?.part == .consumers && $0.key != key && $0.value.starts(with: Self.alone)
    }
    for some in former.parts(of: EtcdContainer.maximumOperations) {
      let outcome = try store.container.repeating(
        EtcdTransaction(if: [fence], then: some.map { .delete(.key($0.key)) }))
      guard outcome.succeeded else { throw store.queue.replaced() }
    }
    return !former.isEmpty
  }

  deinit { end(nil, .closed) }

  private static var prefix: String { QueueDirectory.etcdPrefix }
  /// The name of its directory on this machine, which has the files of its taken entries.
  var directory: String { Self.prefix + id }

  private func removeDirectories(_ directories: [String], withFiles: Bool) {
    do {
      guard let place = try store.queue.open() else { return }
      for name in directories {
        try place.removeEtcdConsumer(name, withFiles: withFiles)
      }
    } catch {
      // The next consumer of this machine tries it again.
      return
    }
  }

  /// Holds as long as this consumer was not replaced.
  var fence: EtcdTransaction.Condition { .exists(key).fencing }

  /// Whether it was closed, and there is no consumer now.
  func isClosedWithoutSuccessor(_ call: EtcdQueue) throws(EtcdError) -> Bool {
    guard isEnded.load(ordering: .sequentiallyConsistent) else { return false }
    return try call.container.read(store.range(.consumers), keysOnly: true).items.isEmpty
  }

  /// Verifies that no other consumer can have this one's batches.
  ///
  /// - Throws: `leaseLost`; `EtcdError` if that is unknown.
  func confirm(_ call: EtcdQueue) throws {
    #if DEBUG
      if EtcdFault.forgettingFence.isActive { return }
    #endif
    do throws(EtcdError) {
      try session.withLock { $0 }?.confirm(until: call.container.callDeadline)
    } catch {
      guard error.code == .leaseGone else { throw error }
      throw store.queue.replaced()
    }
    let isEnded = isEnded.load(ordering: .sequentiallyConsistent)
    guard try isEnded ? isClosedWithoutSuccessor(call) : view.isThere(id) else {
      throw store.queue.replaced()
    }
  }

  /// Whether only this consumer itself can have ended: its session lasts, and it has no successor.
  var isCertain: Bool { !isAlone && session.withLock { $0?.isCertain == true } }

  func isIdle(countsTaken: Bool) throws -> Bool {
    let found = try store.client.read(
      [.init(store.range(.owners)), .init(store.range(.entries), keysOnly: true)],
      until: store.container.callDeadline
    ).items
    let (owners, entries) = (found[0], found[1])
    let consumers = owners.map { BatchOwner($0.value).consumer }
    let taken = Set(owners.compactMap { store.batch($0.key) })
    return (!countsTaken || !consumers.contains(id))
      && entries.allSatisfy { store.batch($0.key).map { taken.contains($0) } ?? true }
  }

  func watch(_ signal: @escaping @Sendable () -> Void) -> [any Cancelling] {
    view.onNews(signal)
    let session = session.withLock { $0 }
    sessionEnd.withLock { $0 = session?.onEnd(signal) }
    return []
  }

  // No program removes keys.
  func noteLoss() {}

  func belongs(to registration: EtcdRegistration) {
    self.registration.withLock { $0 = { [weak registration] in registration } }
  }

  func leaves() { isLeaving.store(true, ordering: .sequentiallyConsistent) }

  func end(_ registration: PresenceRegistration?, _ cause: ConsumerEnd) {
    guard cause != .replaced else {
      return Blocking.queue().async { self.end(registration, .closed) }
    }
    guard !isEnded.exchange(true, ordering: .sequentiallyConsistent) else { return }
    view.cancel()
    sessionEnd.withLock { $0 = nil }
    // Files whose entries have not ended can still be taken, until another process consumes.
    removeDirectories([directory], withFiles: false)
    registration?.end(asDeath: cause == .death)
    // It has no registration, or has lost it.
    guard !isLeaving.load(ordering: .sequentiallyConsistent), let session = session.withLock({ $0 })
    else { return }
    // Its batches go to the next consumer, so this is done before it returns, if possible.
    let (store, key) = (store, key)
    session.insist { deadline in
      _ = try store.container.until(deadline).repeating(
        .init(if: [.exists(key)], then: [.delete(.key(key))]))
    }
  }
}
