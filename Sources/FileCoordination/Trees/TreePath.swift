import SystemCalls

/// The path of an entry below some directory, byte for byte; empty for that directory itself.
struct TreePath: Hashable, Sendable {
  let bytes: [UInt8]

  init(bytes: [UInt8] = []) {
    self.bytes = bytes
  }

  init(_ name: FileName) {
    bytes = name.bytes
  }

  /// The path as text; repaired where it is not valid UTF-8, so only for reading.
  var text: String { String(decoding: bytes, as: UTF8.self) }

  var components: [FileName] {
    bytes.split(separator: UInt8(ascii: "/")).map { FileName(bytes: Array($0)) }
  }

  func appending(_ name: FileName) -> TreePath {
    guard !bytes.isEmpty else { return TreePath(name) }
    return TreePath(bytes: bytes + [UInt8(ascii: "/")] + name.bytes)
  }

  /// The path without its last component, whose length is known.
  func parent(ofNameWith length: Int) -> TreePath {
    TreePath(bytes: Array(bytes.dropLast(length + 1)))
  }
}

extension TreePath: Comparable {
  /// A directory comes before its entries.
  static func < (first: TreePath, second: TreePath) -> Bool {
    first.bytes.lexicographicallyPrecedes(second.bytes)
  }
}
