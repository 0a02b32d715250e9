extension EtcdTransaction.Condition {
  /// How much of a content is compared: more than any part of it that changes without the rest.
  package static let comparedBytes = 1_024
}

extension [EtcdTransaction.Condition] {
  /// The keys are unchanged since they were read, all in one history.
  ///
  /// A revision alone does not prove that, because a history that replaces another one gives it to
  /// another change. So the content of the key that was changed last is compared, too. If it is the
  /// same, both histories are the same up to its revision, including the changes of all other keys.
  ///
  /// - Parameters:
  ///   - items: The keys, each with its content when it was read; nil if it did not exist.
  ///   - stamp: The number of bytes at the beginning of a content that are unique to a change.
  package static func unchanged(
    _ items: [(key: [UInt8], item: KeyValue?)], stamp: Int = Element.comparedBytes
  ) -> Self {
    let last = items.compactMap(\.item).max { $0.modified < $1.modified }
    return items.map { .modified($0.key, at: $0.item?.modified ?? 0) }
      + (last.map { same($0, stamp) } ?? [])
  }

  private static func same(_ item: KeyValue, _ stamp: Int) -> Self {
    guard item.value.count > stamp else { return [.value(of: item.key, item.value)] }
    let start = [UInt8](item.value.prefix(stamp))
    let end = KeyRange.end(ofPrefix: start)
    return [.value(of: item.key, start, is: .greater)]
      + (end == [0] ? [] : [.value(of: item.key, end, is: .less)])
  }
}

extension KeyValue {
  package var unchanged: [EtcdTransaction.Condition] { .unchanged([(key, self)]) }
}
