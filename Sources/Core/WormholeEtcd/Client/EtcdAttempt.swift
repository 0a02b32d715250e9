// A request to a member, and its result.
extension EtcdCluster {
  /// A request to a member.
  struct Question {
    let path: String
    let content: [UInt8]
    let maximumBytes: Int
    /// Whether the answer has at least the newest revision that the cluster agreed on.
    let isOfNewest: Bool

    init(_ path: String, _ message: WireText = [:], maximumBytes: Int = AnswerLimit.plain) {
      self.path = path
      isOfNewest = path.hasPrefix("kv/")
      content = message.bytes
      self.maximumBytes = maximumBytes
    }
  }

  /// Whether a member that did nothing may act another time.
  enum Prospect: Int {
    /// It would give the same answer again.
    case none
    /// It may give the same answer forever, or another one a moment later: no server listens there,
    /// the host has no address, the server is not etcd.
    case poor
    case good
  }

  /// The result of a request to one member.
  enum Attempt<Answer> {
    case answered(Answer)
    /// Nothing was done.
    case failed(String, Prospect)
    /// It may or may not have been done.
    case doubtful(String, Prospect)
    /// It was done, and its answer is too long.
    case tooLarge(String)
  }
}

extension EtcdCluster.Attempt {
  var answer: Answer? { if case .answered(let answer) = self { answer } else { nil } }

  /// Why a request that changes nothing has no answer.
  var failure: (reason: String, prospect: EtcdCluster.Prospect)? {
    switch self {
    case .answered: nil
    case .failed(let reason, let prospect), .doubtful(let reason, let prospect): (reason, prospect)
    case .tooLarge(let reason): (reason, .poor)
    }
  }
}
