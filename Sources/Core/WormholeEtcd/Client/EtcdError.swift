/// The reason why a call to etcd failed. A failed read has changed nothing, whatever the code.
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
    /// The database has reached its quota. Reading and deleting still works.
    case noSpace
    /// More than etcd accepts at once: bytes, or operations in a transaction.
    case tooLarge
    /// The lease has ended, and with it all of its keys.
    case leaseGone
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

  /// With these words etcd refuses a client's certificate that has a common name, once it has users
  /// (etcd #10366).
  package static let commonName = "CommonName of client"

  /// The answer is of a replaced history, or to a request before the replacement was known.
  package static let replaced = EtcdError(
    .compacted, "the history of the cluster was replaced, for example by a snapshot")

  /// - Parameter reasons: The answer of each endpoint, in the order of the list.
  static func unreachable(_ reasons: [(endpoint: String, reason: String)]) -> EtcdError {
    EtcdError(
      .unreachable, reasons.map { "\($0.endpoint): \($0.reason)" }.joined(separator: "; "))
  }
}

/// The meaning of an answer that is not a success.
enum Refusal: Equatable {
  /// Nothing was done, and repeating it has the same result.
  case final(EtcdError)
  /// Nothing was done, because the token is no longer valid.
  case tokenExpired
  /// Nothing was done, and the member will answer the same again; another one may do it.
  case lasting(String)
  /// Nothing was done; another time or another member may do it.
  case passing(String)
  /// Something may have been done.
  case doubtful(String)

  /// - Parameters:
  ///   - status: The status of HTTP.
  ///   - code: gRPC's code; nil if the content was not etcd's.
  ///   - message: The member's message, in a form that may be shown.
  init(status: Int, code: Int?, message: String) {
    guard let code else {
      let said = message.isEmpty ? "" : ", and said: \(message)"
      if status >= 500 {
        self = .doubtful("it answered with status \(status)\(said)")
      } else if message.contains(EtcdError.commonName) {
        self = .final(EtcdError(.credentialsRefused, message))
      } else {
        self = .lasting(
          "it is not etcd's JSON gateway: it answered with status \(status)\(said)")
      }
      return
    }
    func says(_ part: String) -> Bool { message.contains(part) }
    switch code {
    case 16: self = .tokenExpired
    case 7: self = .final(EtcdError(.permissionDenied, message))
    case 3 where says("user name is empty") || says("authentication failed"),
      9 where says("authentication failed"):
      self = .final(EtcdError(.credentialsRefused, message))
    case 3 where says("too large") || says("too many operations"), 8 where says("larger than"):
      self = .final(EtcdError(.tooLarge, message))
    case 8 where says("space exceeded"): self = .final(EtcdError(.noSpace, message))
    case 8: self = .passing(message)
    case 11 where says("compacted"): self = .final(EtcdError(.compacted, message))
    case 5 where says("lease not found"): self = .final(EtcdError(.leaseGone, message))
    case _ where status >= 500 || status == 408 || status == 499: self = .doubtful(message)
    default: self = .final(EtcdError(.refused, message))
    }
  }
}
