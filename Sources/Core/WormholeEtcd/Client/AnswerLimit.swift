/// The longest answers. The request limits the answer of a member, so that a foreign program in its
/// place takes little memory.
enum AnswerLimit {
  /// An answer without content of keys.
  static let plain = 2 << 20
  /// One key: etcd takes requests of 1.5 MiB, and base64 makes two of them.
  static let key = 5 << 19
  /// Several keys: a page of a read, which is split if it is longer; a line of a watch, which etcd
  /// cuts at 2 MiB before it makes JSON of it.
  static let keys = 10 << 20
  /// A member's metrics: a few hundred kilobytes.
  static let metrics = 4 << 20
}

extension EtcdTransaction {
  var maximumAnswerBytes: Int {
    func limit(_ ranges: [KeyRange]) -> Int {
      ranges.reduce(0) { $0 + ($1.end == nil ? AnswerLimit.key : AnswerLimit.keys) }
    }
    let read = operations.compactMap { operation -> KeyRange? in
      switch operation {
      case .read(let range, _, _): range
      case .put, .delete, .glance, .count: nil
      }
    }
    return AnswerLimit.plain + max(limit(read), limit(otherwise))
  }
}
