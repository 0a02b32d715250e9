import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// A value's key on etcd.
///
/// ```
/// 16 bytes   the stamp of the publication: by it the publisher recognizes it after a lost answer
/// the rest   exactly what a file would hold: the property list, with the record of its publication.
///            Nothing: the value was removed
/// ```
///
/// Its version is the revision of the key's last change. A change is a transaction that replaces
/// the revision that was read, so no update is lost, and a suspended writer blocks no process and
/// cannot publish late. A value that expires hangs on its own lease, so no machine's clock decides.
final class EtcdValue: ValueStore {
  let file: ValueFile
  let etcd: EtcdContainer
  let key: [UInt8]

  init(
    _ etcd: EtcdContainer, container: SharedContainer, _ identifier: String, kind: NameKind
  ) {
    self.etcd = etcd
    file = ValueFile(container: container, identifier: identifier, kind: kind)
    key = etcd.valueKey(kind, identifier)
  }

  var path: String { etcd.location(of: key) }

  // MARK: Reading

  func snapshot(limits: PropertyListLimits) throws -> PlainSnapshot {
    snapshot(of: try read(on: etcd), limits: limits)
  }

  func version() throws -> Version? {
    try read(on: etcd).item.flatMap(Version.init)
  }

  /// Reads the key as a majority of the cluster knows it.
  func read(on etcd: EtcdContainer) throws(EtcdError) -> SeenState {
    let found = try etcd.client.page(.key(key), limit: 1, until: etcd.callDeadline)
    let state = SeenState(item: found.items.first, seen: found.moment)
    know(state)
    return state
  }

  var lastState: SeenState? { etcd.shared.seen.withLock { $0[key] } }

  /// The state of a key that this process has not seen: most likely it does not exist yet.
  var assumedState: SeenState { SeenState(item: nil, seen: etcd.client.cluster.moment) }

  func know(_ state: SeenState) { etcd.shared.seen.withLock { $0.know(state, of: key) } }

  func snapshot(of state: SeenState, limits: PropertyListLimits = .standard) -> PlainSnapshot {
    guard let item = state.item, let version = Version(item) else {
      return PlainSnapshot(bytes: nil, version: nil, of: self)
    }
    var bytes = Array(item.value.dropFirst(Stamp.bytes))
    let record = PublicationRecord.take(from: &bytes)
    guard bytes.count <= limits.maximumBytes else {
      let failure = WormholeError(
        .tooLarge, "read the value", path: path,
        reason: "it has \(bytes.count) bytes, more than the limit of \(limits.maximumBytes)",
        remedy: "raise the limit, or remove it")
      return PlainSnapshot(failure: failure, version: version, of: self)
    }
    return PlainSnapshot(
      bytes: bytes, version: version, of: self, record: record, mayHaveExpired: false)
  }

  func follow(
    leading monitor: ChangeMonitor?, _ signal: @escaping @Sendable () -> Void
  ) throws -> (any ValueFollowing)? {
    monitor == nil ? FollowedKey(value: self, key: try MirroredKey(etcd, key, signal)) : nil
  }

  func proof(of number: UInt64, lost: WormholeError) -> RoleProof {
    RoleProof(
      number: number, condition: EtcdFencedValue(self, number),
      location: etcd.location.description, lost: lost)
  }

  // Clocks of several machines differ.
  func nextFence(after snapshot: PlainSnapshot) -> UInt64? { nil }

  // MARK: Changing

  func commitRecord(_ state: SeenState, _ content: [UInt8]) -> EtcdContainer.CommitRecord {
    .init(
      key: key, base: state.item, seen: state.seen.revision, value: content, stamp: Stamp.bytes)
  }

  func replacement(_ bytes: [UInt8]?, _ terms: ChangeTerms) -> sending any Waiting<Bool> {
    guard let bytes else {
      return EtcdChange(self, terms: terms) { old in
        (old.isAbsent ? .keep : .remove, !old.isAbsent)
      }
    }
    return EtcdChange(self, terms: terms, needsContent: false) { _ in (.replace(bytes), true) }
  }

  func modification<Result: Sendable>(
    _ terms: ChangeTerms, _ decide: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) -> sending any Waiting<Result> {
    EtcdChange(self, terms: terms, decide)
  }

  /// Ends the lease of a state that a change has replaced: its only key no longer hangs on it.
  func retireLease(of state: SeenState, after outcome: EtcdTransaction.Outcome) {
    guard let lease = state.item?.lease, lease != 0 else { return }
    RetiredLeases.add(lease, for: key, of: etcd.client, history: outcome.moment.history)
  }

  func content(
    _ edit: Edit, _ stamp: Stamp, terms: ChangeTerms, after old: PlainSnapshot?
  ) throws -> [UInt8] {
    guard case .replace(let bytes) = edit else { return stamp.wire }
    let record = PublicationRecord(
      nil, peer: terms.peer ?? ActivePeers.single(in: container.root.path), after: old?.publication,
      expiry: terms.expiry)
    let content = stamp.wire + PublishedContent(bytes, record).bytes
    try EtcdContainer.requireSize(of: content, "change the value", path: path, remedy: "")
    return content
  }
}

private struct FollowedKey: ValueFollowing {
  let value: EtcdValue
  let key: MirroredKey

  var detection: ChangeDetection { key.mirror.detection }

  func cancel() { key.cancel() }

  func snapshot(mayWait: Bool) throws -> PlainSnapshot? {
    if let failure = key.mirror.failure { throw failure }
    return value.snapshot(of: key.state)
  }
}

extension EtcdContainer {
  /// Returns the key of a value; for a notification it is the state's key.
  fileprivate func valueKey(_ kind: NameKind, _ identifier: String) -> [UInt8] {
    guard kind.primitive == .notification else { return key(kind, identifier) }
    return key("s", isOwn: kind.isOwn) + EncodedName.key(identifier)
  }

  /// Removes the keys of removed values, unless another process has written them again; returns
  /// their descriptions.
  func removeEmptyValues(of kind: NameKind) throws -> [String] {
    let call = call()
    let all = try call.read(.prefix(key("v", isOwn: kind.isOwn))).items
    var removed: [String] = []
    for item in all where item.value.count <= Stamp.bytes {
      let outcome = try call.repeating(
        EtcdTransaction(if: item.unchanged, then: [.delete(.key(item.key))]))
      if outcome.succeeded { removed.append(location(of: item.key)) }
    }
    return removed
  }
}

extension Version {
  /// The version of a key; nil if the value was removed, or its content is too short.
  init?(_ item: KeyValue) {
    guard item.value.count > Stamp.bytes else { return nil }
    self.init(stamp: Stamp(wire: item.value.prefix(Stamp.bytes)), revision: item.modified)
  }
}

extension Stamp {
  static let bytes = 16

  /// A stamp that no other publication has.
  static func unique() -> Stamp {
    Stamp(
      seconds: .random(in: 0...(.max)), nanoseconds: .random(in: 0..<1_000_000_000))
  }

  init(wire bytes: some Collection<UInt8>) {
    let number = { (part: any Collection<UInt8>) in
      part.reduce(Int64(0)) { $0 << 8 | Int64($1) }
    }
    self.init(seconds: number(bytes.prefix(8)), nanoseconds: number(bytes.dropFirst(8)))
  }

  /// Most significant byte first.
  var wire: [UInt8] {
    [seconds, nanoseconds].flatMap { number in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
  }
}
