/// A revision and its history: only revisions of one history can be compared.
///
/// A cluster restored from a snapshot keeps its number, and its revisions come a second time, for
/// other changes. A client counts the histories that it has seen, beginning with 0.
package struct EtcdMoment: Hashable, Comparable, Sendable {
  package let history: Int
  package internal(set) var revision: Int64

  /// Before everything that is known.
  static let none = EtcdMoment(history: 0, revision: 0)

  package static func < (one: EtcdMoment, other: EtcdMoment) -> Bool {
    (one.history, one.revision) < (other.history, other.revision)
  }
}

/// The proof that a history was replaced: the newest revision was lower than a known one.
package struct EtcdReplacement: Hashable, Sendable {
  package let known: Int64
  package let found: Int64
}
