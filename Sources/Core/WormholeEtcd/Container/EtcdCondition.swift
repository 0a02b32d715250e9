import Wormhole

/// The conditions of a change that only one holder may make.
protocol EtcdHolding: EngineCondition {
  var conditions: [EtcdTransaction.Condition] { get }
  /// Checks whether it still holds, after a change was refused because of this or other conditions.
  func stillHolds(on etcd: EtcdContainer) throws -> Bool
}

/// The conditions that hold as long as a registration, or a role, belongs to one entering.
struct EtcdCondition: EtcdHolding {
  let conditions: [EtcdTransaction.Condition]

  func stillHolds(on etcd: EtcdContainer) throws -> Bool {
    try etcd.repeating(EtcdTransaction(if: conditions, then: [])).succeeded
  }
}

extension RoleProof {
  var conditions: [EtcdTransaction.Condition] {
    (condition as? any EtcdHolding)?.conditions ?? []
  }

  /// Checks the conditions after a change was refused because of these or others.
  func check(on etcd: EtcdContainer) throws {
    guard let holding = condition as? any EtcdHolding, try !holding.stillHolds(on: etcd) else {
      return
    }
    throw lost
  }
}
