package import SystemCalls

/// The path of an entry below some directory, byte for byte; empty for that directory itself.
package struct TreePath: Hashable, Sendable {
  package let bytes: [UInt8]

  package init(bytes: [UInt8] = []) {
    self.bytes = bytes
  }

  package init(_ name: FileName) {
    bytes = name.bytes
  }

  /// The path as text; repaired where it is not valid UTF-8, so only for reading.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  package func appending(_ name: FileName) -> TreePath {
    guard !bytes.isEmpty else { return TreePath(name) }
    return TreePath(bytes: bytes + [UInt8(ascii: "/")] + name.bytes)
  }

  /// The path without its last component.
  package func parent(ofNameWith length: Int) -> TreePath {
    TreePath(bytes: Array(bytes.dropLast(length + 1)))
  }
}
