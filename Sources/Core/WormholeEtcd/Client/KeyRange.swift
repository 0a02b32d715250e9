/// Keys of etcd, which are bytes in their lexical order.
package struct KeyRange: Hashable, Sendable {
  let first: [UInt8]
  /// The first key beyond; nil for a single key. etcd's sign for "no end" is a zero byte.
  let end: [UInt8]?

  package static func key(_ key: [UInt8]) -> KeyRange { KeyRange(first: key, end: nil) }

  /// All keys that begin with some bytes; with none, all keys.
  package static func prefix(_ prefix: [UInt8]) -> KeyRange {
    KeyRange(first: prefix.isEmpty ? [0] : prefix, end: end(ofPrefix: prefix))
  }

  /// The keys from one up to, but not including, another.
  package static func range(from first: [UInt8], to end: [UInt8]) -> KeyRange {
    KeyRange(first: first, end: end)
  }

  /// The same range without the keys up to and including one of it.
  package func after(_ key: [UInt8]) -> KeyRange { KeyRange(first: key + [0], end: end) }

  func contains(_ key: [UInt8]) -> Bool {
    guard let end else { return key == first }
    return !key.lexicographicallyPrecedes(first)
      && (end == [0] || key.lexicographicallyPrecedes(end))
  }

  /// Returns the first key beyond all that begin with some bytes.
  package static func end(ofPrefix prefix: [UInt8]) -> [UInt8] {
    var end = prefix
    while let last = end.popLast() {
      if last < 255 { return end + [last + 1] }
    }
    return [0]
  }
}

/// A key with its value, as of some revision.
package struct KeyValue: Hashable, Sendable {
  package let key: [UInt8]
  package let value: [UInt8]
  /// The revision at which it was created.
  package let created: Int64
  /// The revision of its last change.
  package let modified: Int64
  /// The number of its changes since it was created.
  package let version: Int64
  /// The lease that it ends with, or 0.
  package let lease: Int64
}
