import Wormhole

/// The conditions that hold as long as a registration, or a role, belongs to one entering.
struct EtcdCondition: EngineCondition {
  let conditions: [EtcdTransaction.Condition]
}

extension (any EngineCondition)? {
  var onEtcd: [EtcdTransaction.Condition] { (self as? EtcdCondition)?.conditions ?? [] }
}

extension RoleProof {
  var conditions: [EtcdTransaction.Condition] { condition.onEtcd }

  /// Checks the conditions after a change was refused because of them or of others.
  func check(on etcd: EtcdContainer) throws {
    let outcome = try etcd.repeating(EtcdTransaction(if: conditions, then: []))
    guard outcome.succeeded else { throw lost }
  }
}
