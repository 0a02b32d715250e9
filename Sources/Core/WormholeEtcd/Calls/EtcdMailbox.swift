import Dispatch
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// A mailbox of this process on etcd, made again under its address when its session has ended.
///
/// Entries are delivered from the events of the watch, on a queue of its own, and deleted on
/// another, a little later and many at once, because their deletion must not delay etcd's answers
/// to them. **At most once**: delivered entries are remembered, the last ones even beyond their
/// deletion; a complete look covers all events up to its moment. Entries that hang on another
/// session than the owner's current one, or that were read in another history than the one in which
/// it began, are ignored: a snapshot has brought them back.
final class EtcdMailbox: Mailbox, KeyFollowing {
  /// The owner's key.
  private struct OwnerKey: Sendable {
    let handler: EtcdSession.EndHandler
    let created: Int64

    var session: EtcdSession { handler.session }
  }

  private struct State {
    var ownerKey: OwnerKey?
    /// The session on which its entries hang.
    var session: EtcdSession?
    var isClosed = false
    /// Delivered entries that still have to be deleted.
    var delivered: [[UInt8]] = []
    var isDeleting = false
  }

  /// The delivered entries; used on the queue that delivers.
  private struct Delivery {
    /// All entries that a complete look saw up to this moment were delivered by it, or before.
    var seen = EtcdMoment.none
    /// Delivered entries that may not be deleted yet.
    var known: Set<[UInt8]> = []
    /// Entries that were deleted recently.
    var deleted = LatestKeys()
  }

  let address: String
  private let etcd: EtcdContainer
  private let keys: MailboxKeys
  private let deliver: @Sendable (PropertyListValue) -> Void
  private let process = ProcessIdentity.current
  private let state = Mutex(State())
  private let delivery = Mutex(Delivery())
  private let queue = Blocking.queue()
  private let deleting = Blocking.queue()
  private let follower: KeyFollower
  private let idle: Mutex<IdleLanes>

  /// How long a complete look may take before it is postponed.
  private static let lookWait: Duration = .seconds(2)
  private static let retry: Duration = .seconds(1)
  /// How long an entry may stay after its delivery; others are deleted with it.
  private static let deletionPause: Duration = .milliseconds(50)
  /// How many entries are deleted together.
  private static let batch = 100

  /// Makes the mailbox.
  ///
  /// - Parameter laneAge: The least time that a sender's lane stays after its last post.
  init(
    _ address: String, _ etcd: EtcdContainer, laneAge: Duration = .seconds(600),
    _ deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws {
    self.address = address
    self.etcd = etcd
    keys = MailboxKeys(etcd, address)
    self.deliver = deliver
    idle = Mutex(IdleLanes(age: laneAge))
    follower = KeyFollower(etcd, keys.entries, on: queue)
    let moment = try reporting("make a mailbox", path: keys.path) { try make(etcd.call()) }
    follower.begin(for: self, after: moment)
  }

  // MARK: Making

  /// Creates the owner's key, and returns the moment.
  private func make(_ call: EtcdContainer) throws -> EtcdMoment {
    let owner: PropertyListValue = [
      "pid": .integer(Int64(process.processID)), "program": .string(ProcessIdentity.program),
      "host": .string(Program.hostName), "stamp": .string(Nonce.next()),
    ]
    let bytes = try owner.binaryBytes()
    let (session, outcome) = try call.underSession { session in
      state.withLock { $0.session = session }
      let outcome = try call.commit(
        EtcdTransaction(if: [], then: []), .init(key: keys.owner, base: nil, value: bytes),
        lease: session.lease)
      return (session, outcome)
    }
    guard outcome.succeeded else { throw EtcdError(.refused, "its address is in use") }
    let ownerKey = OwnerKey(
      handler: session.onEnd { [weak self] in self?.sessionEnded() }, created: outcome.revision)
    let isWanted = state.withLock { state in
      if !state.isClosed { state.ownerKey = ownerKey }
      return !state.isClosed
    }
    if !isWanted { Self.remove(ownerKey, keys, in: etcd) }
    return outcome.moment
  }

  private func sessionEnded() {
    guard process == .current, !state.withLock(\.isClosed) else { return }
    do {
      // Its entries are still followed.
      _ = try make(etcd.until(.now + CallLimit.standardWait))
    } catch {
      queue.after(Self.retry) { [weak self] in self?.sessionEnded() }
    }
  }

  // MARK: Its end

  // On its own thread, because the thread that releases the last reference must not wait for etcd.
  deinit {
    guard let ownerKey = takeOwnerKey() else { return }
    let (etcd, keys) = (etcd, keys)
    Blocking.queue().async { Self.remove(ownerKey, keys, in: etcd) }
  }

  func end(asDeath: Bool) {
    if let ownerKey = takeOwnerKey() { Self.remove(ownerKey, keys, in: etcd) }
  }

  private func takeOwnerKey() -> OwnerKey? {
    let ownerKey = state.withLock { state in
      defer { (state.ownerKey, state.session, state.isClosed) = (nil, nil, true) }
      return state.ownerKey
    }
    follower.cancel()
    return process == .current ? ownerKey : nil
  }

  private static func remove(_ ownerKey: OwnerKey, _ keys: MailboxKeys, in etcd: EtcdContainer) {
    ownerKey.session.insist { deadline in
      _ = try etcd.until(deadline).repeating(
        EtcdTransaction(
          if: [.created(keys.owner, at: ownerKey.created)], then: [.delete(keys.everything)]))
    }
  }

  // MARK: Delivering

  // On the thread of the watches.
  func hear(_ events: [EtcdEvent], of history: Int) {
    let posts = events.filter { $0.kind == .put }.map(\.keyValue)
    if !posts.isEmpty { queue.async { [weak self] in self?.take(posts, of: history) } }
  }

  func catchUp() {
    queue.sync {
      do throws(EtcdError) {
        _ = try look(until: .now + Self.lookWait)
      } catch {
        follower.check()
      }
    }
  }

  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    let found = try etcd.until(min(deadline, .now + Self.lookWait)).read(keys.entries)
    let items = found.items.sorted { $0.created < $1.created }
    take(items, of: found.moment.history, seen: found.moment)
    return found.moment
  }

  /// Delivers entries that were not delivered yet.
  ///
  /// - Parameter seen: The moment, if these are all.
  private func take(_ items: [KeyValue], of history: Int, seen: EtcdMoment? = nil) {
    guard let session = state.withLock(\.session) else { return }
    let new = delivery.withLock { delivery in
      let new = items.filter { item in
        session.history == history && item.lease == session.lease
          && (seen != nil || EtcdMoment(history: history, revision: item.modified) > delivery.seen)
          && !delivery.deleted.contains(item.key) && delivery.known.insert(item.key).inserted
      }
      delivery.seen = max(delivery.seen, seen ?? delivery.seen)
      return new
    }
    guard !new.isEmpty else { return }
    for item in new {
      // Its sender wrote no property list; there is nothing to keep it for.
      guard let value = try? PropertyListValue(bytes: item.value) else { continue }
      deliver(value)
    }
    delete(new.map(\.key))
  }

  // MARK: Deleting

  private func delete(_ keys: [[UInt8]]) {
    let mustBegin = state.withLock { state in
      state.delivered += keys
      return !exchange(&state.isDeleting, with: true)
    }
    if mustBegin { deleteLater(after: Self.deletionPause) }
  }

  private func deleteLater(after pause: Duration) {
    deleting.after(pause) { [weak self] in self?.deleteAll() }
  }

  private func deleteAll() {
    while let batch = state.withLock({ state -> [[UInt8]]? in
      guard !state.isClosed, !state.delivered.isEmpty else {
        state.isDeleting = false
        return nil
      }
      return Array(state.delivered.prefix(Self.batch))
    }) {
      do throws(EtcdError) {
        // Without an owner they have ended with it. No other process uses their keys.
        _ = try etcd.until(.now + CallLimit.standardWait).repeating(
          EtcdTransaction(if: [.exists(keys.owner)], then: batch.map { .delete(.key($0)) }))
      } catch {
        return deleteLater(after: Self.retry)
      }
      state.withLock { $0.delivered.removeFirst(batch.count) }
      // In turn with the looks, each of which may have seen them before.
      queue.async { [weak self] in
        self?.delivery.withLock { delivery in
          delivery.known.subtract(batch)
          for key in batch { delivery.deleted.insert(key) }
        }
      }
    }
    sweepLanes()
  }

  // MARK: Sweeping

  /// Removes the lanes of senders that are gone, now and then.
  private func sweepLanes() {
    guard let session = state.withLock(\.ownerKey)?.session, idle.withLock(\.isDue) else { return }
    let etcd = etcd.until(.now + CallLimit.standardWait)
    do throws(EtcdError) {
      let lanes = try etcd.read(keys.lanes, keysOnly: true)
      for some in idle.withLock({ $0.take(lanes) }).parts(of: Self.batch) {
        // If one of them is in use again, all stay until the next sweep.
        _ = try etcd.repeating(
          EtcdTransaction(
            if: [.exists(keys.owner)] + some.map { .modified($0.key, at: $0.modified) },
            then: [.put(key: keys.sweep, value: [], lease: session.lease)]
              + some.map { .delete(.key($0.key)) }))
      }
    } catch {
      // The next sweep finds them again.
      return
    }
  }
}

/// The lanes of a mailbox that no sender has used for so long that no copy of a post can arrive.
///
/// A lane is idle if it had no post between two looks, so it stays between one and two ages.
struct IdleLanes {
  let age: Duration
  private var looked: EtcdMoment?
  private var next: ContinuousClock.Instant

  init(age: Duration) {
    self.age = age
    next = .now + age
  }

  var isDue: Bool { .now >= next }

  /// Takes a look, and returns the idle lanes in it.
  mutating func take(_ lanes: EtcdClient.Content) -> [KeyValue] {
    defer {
      looked = lanes.moment
      next = .now + age
    }
    guard let looked, looked.history == lanes.moment.history else { return [] }
    return lanes.items.filter { $0.modified <= looked.revision }
  }
}
