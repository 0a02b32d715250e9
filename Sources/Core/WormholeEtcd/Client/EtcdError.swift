/// Why a call to etcd failed. A failed read has changed nothing, whatever the code.
package struct EtcdError: Error, Hashable, CustomStringConvertible {
  package enum Code: Sendable {
    /// No member answered; nothing was done.
    case unreachable
    /// The transaction was sent and its answer lost: it may have happened, or may happen later.
    case outcomeUnknown
    /// The user may not do that with these keys.
    case permissionDenied
    /// The user or the password is wrong, or is missing.
    case credentialsRefused
    /// The history begins after the requested revision, or was replaced.
    case compacted
    /// The database has reached its quota. Reading and deleting still work.
    case noSpace
    /// More than etcd accepts at once: bytes, or operations in a transaction.
    case tooLarge
    /// The lease has ended, and with it all of its keys.
    case leaseGone
    /// The container was removed.
    case containerGone
    /// etcd refused the request for another reason.
    case refused
    /// libcurl is missing.
    case libraryMissing
  }

  package let code: Code
  package let reason: String
  /// With `.compacted` of a watch, the first existing revision.
  package let revision: Int64?

  package init(_ code: Code, _ reason: String, revision: Int64? = nil) {
    self.code = code
    self.reason = reason
    self.revision = revision
  }

  package var description: String { reason }

  /// etcd's words when it refuses a client's certificate with a common name, once it has users.
  package static let commonName = "CommonName of client"

  /// The answer is of a replaced history, or to a request before the replacement was known.
  package static let replaced = EtcdError(
    .compacted, "the history of the cluster was replaced, for example by a snapshot")

  static let containerGone = EtcdError(
    .containerGone, "it was removed since this process opened it")

  /// - Parameter reasons: The answer of each endpoint, in the order of the list.
  static func unreachable(_ reasons: [(endpoint: String, reason: String)]) -> EtcdError {
    EtcdError(
      .unreachable, reasons.map { "\($0.endpoint): \($0.reason)" }.joined(separator: "; "))
  }
}
