// What a member is asked, and what came of it.
extension EtcdCluster {
  /// What a member is asked.
  struct Question {
    let path: String
    let content: [UInt8]
    let maximumBytes: Int
    /// Whether the answer is of the newest revision that the cluster agreed on, or of a newer one.
    let isOfNewest: Bool

    init(_ path: String, _ message: WireText = [:], maximumBytes: Int = AnswerLimit.plain) {
      self.path = path
      isOfNewest = path.hasPrefix("kv/")
      content = message.bytes
      self.maximumBytes = maximumBytes
    }
  }

  /// Whether a member that did nothing may do it another time.
  enum Prospect: Int {
    /// It would say the same again.
    case none
    /// It would say the same each time, or another thing a moment later: nobody listens there, the host has
    /// no address, it is no etcd.
    case poor
    case good
  }

  /// The result of asking one member.
  enum Attempt<Answer> {
    case answered(Answer)
    /// Nothing was done.
    case failed(String, Prospect)
    /// It was done or not.
    case doubtful(String, Prospect)
    /// It was done, and its answer is longer than accepted.
    case tooLarge(String)
  }
}

extension EtcdCluster.Attempt {
  var answer: Answer? { if case .answered(let answer) = self { answer } else { nil } }

  /// Why there is no answer to a question that changes nothing.
  var failure: (reason: String, prospect: EtcdCluster.Prospect)? {
    switch self {
    case .answered: nil
    case .failed(let reason, let prospect), .doubtful(let reason, let prospect): (reason, prospect)
    case .tooLarge(let reason): (reason, .poor)
    }
  }
}
