import Synchronization
import Wormhole

/// The condition that a value has the number of one holder, who may renew it: then its revision
/// changes, and its number does not.
final class EtcdFencedValue: EtcdHolding {
  private let value: EtcdValue
  private let number: UInt64
  /// Of the last look; no key has this one.
  private let revision = Mutex<Int64>(-1)

  init(_ value: EtcdValue, _ number: UInt64) {
    self.value = value
    self.number = number
  }

  var conditions: [EtcdTransaction.Condition] {
    [.modified(value.key, at: revision.withLock(\.self)).fencing]
  }

  func stillHolds(on etcd: EtcdContainer) throws -> Bool {
    let state = try value.read(on: etcd)
    let snapshot = value.snapshot(of: state)
    guard let version = snapshot.version, let content = try snapshot.propertyList(),
      content[RoleProof.key]?.uint64Value ?? version.revision == number
    else { return false }
    revision.withLock { $0 = Int64(clamping: version.revision) }
    return true
  }
}
