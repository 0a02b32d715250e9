/// A change that etcd makes only under conditions: all of it, in one revision, or nothing.
///
/// Every write has a condition, because a late copy of it could overwrite newer content. The one
/// exception is `EtcdClient.put`.
package struct EtcdTransaction: Hashable, Sendable {
  /// The conditions; all of them have to hold.
  package var conditions: [Condition]
  package var operations: [Operation]
  /// The ranges to read in the same step if they do not hold.
  package var otherwise: [KeyRange]

  package init(
    if conditions: [Condition], then operations: [Operation], otherwise: [KeyRange] = []
  ) {
    precondition(
      !conditions.isEmpty || operations.allSatisfy(\.isRead), "a write has a condition")
    self.conditions = conditions
    self.operations = operations
    self.otherwise = otherwise
  }

  /// A comparison of a key's state with an expected state. A key that does not exist has version,
  /// revisions and lease 0, and no value.
  package struct Condition: Hashable, Sendable {
    enum Target: Hashable, Sendable {
      case version(Int64)
      case created(Int64)
      case modified(Int64)
      case value([UInt8])
    }

    package enum Relation: String, Sendable {
      case equal = "EQUAL"
      case less = "LESS"
      case greater = "GREATER"
    }

    let key: [UInt8]
    let relation: Relation
    let target: Target

    package static func absent(_ key: [UInt8]) -> Condition { version(of: key, 0) }

    package static func exists(_ key: [UInt8]) -> Condition {
      version(of: key, 0, is: .greater)
    }

    package static func version(
      of key: [UInt8], _ version: Int64, is relation: Relation = .equal
    ) -> Condition {
      Condition(key: key, relation: relation, target: .version(version))
    }

    package static func created(_ key: [UInt8], at revision: Int64) -> Condition {
      Condition(key: key, relation: .equal, target: .created(revision))
    }

    /// The key was last changed at a revision. For a key that must be unchanged, see `unchanged`.
    package static func modified(_ key: [UInt8], at revision: Int64) -> Condition {
      Condition(key: key, relation: .equal, target: .modified(revision))
    }

    package static func value(
      of key: [UInt8], _ value: [UInt8], is relation: Relation = .equal
    ) -> Condition {
      Condition(key: key, relation: relation, target: .value(value))
    }
  }

  package enum Operation: Hashable, Sendable {
    case put(key: [UInt8], value: [UInt8], lease: Int64 = 0)
    case delete(KeyRange)
    /// - Parameter limit: How many of the first keys are read; nil for all.
    case read(KeyRange, keysOnly: Bool = false, limit: Int? = nil)
    /// Asks how many keys a range has, and when one last changed; the member reads them all.
    case glance(KeyRange)
    /// Asks how many keys a range has.
    case count(KeyRange)

    var isRead: Bool {
      switch self {
      case .read, .glance, .count: true
      case .put, .delete: false
      }
    }
  }

  package struct Outcome: Hashable, Sendable {
    /// Whether the conditions held.
    package let succeeded: Bool
    /// The revision of the change; without a change, of the read.
    package let revision: Int64
    /// The number of its history; see `EtcdMoment`.
    package let history: Int
    /// For each operation, or each range of `otherwise`, its result.
    package internal(set) var results: [Result]

    package var moment: EtcdMoment { EtcdMoment(history: history, revision: revision) }
  }

  package enum Result: Hashable, Sendable {
    case put, deleted
    /// With a limit there may be more keys; then there is at least one.
    case read([KeyValue], isIncomplete: Bool = false)
    /// The number of keys, and the revision of their last change; 0 without keys.
    case glance(count: Int64, newest: Int64)
    case count(Int64)

    var items: [KeyValue] { if case .read(let items, _) = self { items } else { [] } }
  }
}
