/// Why a request to one member has no answer that counts.
enum MemberFailure: Error, Equatable {
  /// Nothing was done, and repeating it has the same result.
  case final(EtcdError)
  /// Nothing was done, because the token is no longer valid.
  case tokenExpired
  /// Nothing was done.
  case failed(String, Prospect)
  /// It may or may not have been done.
  case doubtful(String, Prospect)
  /// It was done, and its answer is too long.
  case tooLarge(String)

  /// Whether a member that did nothing may act another time.
  enum Prospect: Comparable {
    /// It would give the same answer again.
    case none
    /// It may give the same answer forever, or another one a moment later: no server listens there,
    /// the host has no address, the server is not etcd.
    case poor
    case good
  }

  var reason: String {
    switch self {
    case .final(let error): error.reason
    case .tokenExpired: "it wants a token for a token"
    case .failed(let reason, _), .doubtful(let reason, _), .tooLarge(let reason): reason
    }
  }

  var prospect: Prospect {
    switch self {
    case .final: .none
    case .failed(_, let prospect), .doubtful(_, let prospect): prospect
    case .tooLarge: .poor
    case .tokenExpired: .good
    }
  }

  /// The same for a request that comes before the caller's, which was not sent then.
  var ofPreparation: MemberFailure {
    if case .final = self { self } else { .failed(reason, prospect) }
  }

  /// The error of a request that is sent to this member only.
  func error(of endpoint: String) -> EtcdError {
    if case .final(let error) = self { error } else { .unreachable([(endpoint, reason)]) }
  }

  /// The error of a stream that the member refuses for good; nil if the next one may last.
  func refusal(by endpoint: String) -> EtcdError? {
    prospect == .none ? error(of: endpoint) : nil
  }
}

extension MemberFailure {
  init(_ error: HTTPError) {
    switch error.code {
    case .libraryMissing: self = .final(EtcdError(.libraryMissing, error.reason))
    case .certificate: self = .failed(error.reason, .none)
    case .refused, .nameNotFound: self = .failed(error.reason, .poor)
    case .timedOut: self = .failed(error.reason, .good)
    case .tooLarge: self = .tooLarge(error.reason)
    case .inDoubt, .ended, .cancelled: self = .doubtful(error.reason, .good)
    }
  }

  /// The meaning of an answer that is not a success.
  init(_ answer: HTTPAnswer) {
    let status = answer.status
    let error = EtcdWire.decode(answer.content, as: WireError.self)
    // Without gRPC's code the content is not etcd's.
    let text = error?.code == nil ? nil : error?.message
    let message = text.map { EtcdWire.shown($0) } ?? EtcdWire.shown(answer.content)
    guard let code = error?.code else {
      let said = message.isEmpty ? "" : ", and said: \(message)"
      if status >= 500 {
        self = .doubtful("it answered with status \(status)\(said)", .good)
      } else if message.contains(EtcdError.commonName) {
        self = .final(EtcdError(.credentialsRefused, message))
      } else {
        self = .failed(
          "it is not etcd's JSON gateway: it answered with status \(status)\(said)", .none)
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
    case 8: self = .failed(message, .good)
    case 11 where says("compacted"): self = .final(EtcdError(.compacted, message))
    case 5 where says("lease not found"): self = .final(EtcdError(.leaseGone, message))
    case _ where status >= 500 || status == 408 || status == 499:
      self = .doubtful(message, .good)
    default: self = .final(EtcdError(.refused, message))
    }
  }
}
