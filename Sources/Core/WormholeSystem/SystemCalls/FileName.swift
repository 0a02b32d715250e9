import Glibc
import WormholeShims

/// The name of a directory entry, byte for byte, because other programs may have chosen it.
package struct FileName: Hashable, Sendable {
  package let bytes: [UInt8]

  package init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  package init(_ text: some StringProtocol) {
    bytes = Array(text.utf8)
  }

  /// The name as text, repaired if it is not valid UTF-8; only for display.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  // Hashing byte by byte, as an array does, takes longer than the rest of taking an event.
  package func hash(into hasher: inout Hasher) {
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
  }

  package func hasPrefix(_ prefix: String) -> Bool { bytes.starts(with: prefix.utf8) }
}

/// A path for a system call: text, or a name that need not be valid UTF-8.
package protocol PathText {
  /// Takes a path from a call; nil for text that is not valid UTF-8, which would be another path
  /// once it is repaired.
  init?(pathBytes: [UInt8])

  /// Lends the path to a call as a C string.
  func withCPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result
}

extension FileName: PathText {
  package init(pathBytes: [UInt8]) { bytes = pathBytes }

  package func withCPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    // A name from the kernel has no NUL inside, so the C string is the whole name.
    ComposedPath(pathBytes: bytes).withCPath(body)
  }
}

extension String: PathText {
  package init?(pathBytes: [UInt8]) { self.init(validating: pathBytes, as: UTF8.self) }

  package func withCPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    withCString(body)
  }
}

/// A path that is composed for each of several calls, in the same memory.
package struct ComposedPath: PathText {
  /// With the terminator.
  private var bytes: [UInt8]

  package init(pathBytes: [UInt8]) { bytes = pathBytes + [0] }

  /// Replaces the path with one of three pieces.
  package mutating func compose(
    _ first: ArraySlice<UInt8>, _ second: String, _ third: ArraySlice<UInt8> = []
  ) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(contentsOf: first)
    bytes.append(contentsOf: second.utf8)
    bytes.append(contentsOf: third)
    bytes.append(0)
  }

  /// Replaces the last bytes with a number in hex, with all its digits.
  package mutating func replaceEnd(with number: UInt64) {
    bytes.withUnsafeMutableBufferPointer {
      NameWriter.replaceEnd(
        of: UnsafeMutableBufferPointer(rebasing: $0.dropLast()), hex: number)
    }
  }

  package func withCPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    bytes.withUnsafeBytes { raw in
      guard let base = raw.bindMemory(to: CChar.self).baseAddress else {
        preconditionFailure("an array with a terminator is never empty")
      }
      return body(base)
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns whether the bytes equal a text's. The corresponding C function is `memcmp`: Swift's
  /// own comparison of bytes is slow in a debug build.
  package func isEqual(to text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    return baseAddress.map { memcmp($0, text.utf8Start, count) == 0 } ?? true
  }
}

extension [UInt8] {
  /// Whether two files are equal, by `memcmp`, because `==` goes byte by byte.
  package func hasSameBytes(as other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    return withUnsafeBytes { bytes in
      other.withUnsafeBytes { others in
        guard let a = bytes.baseAddress, let b = others.baseAddress else { return true }
        return memcmp(a, b, bytes.count) == 0
      }
    }
  }
}

extension FileDescriptor {
  /// Opens an entry, unless something is mounted on it. The corresponding C function is `openat2`
  /// with `RESOLVE_NO_XDEV`.
  ///
  /// - Throws: `.crossesDevices` for a mount point, `.tooManyLinks` for a symbolic link, otherwise
  ///   as in openat2(2); `.noFunction` or `.notPermitted` if a sandbox refuses the call.
  package static func openSameMount(
    _ name: FileName, at directory: Int32, _ options: OpenOptions
  ) throws(Errno) -> FileDescriptor {
    try open(
      name, at: directory, options,
      resolving: csys_RESOLVE_BENEATH | csys_RESOLVE_NO_SYMLINKS | csys_RESOLVE_NO_XDEV)
  }

  /// Opens a path without a symbolic link on it, not even at its end. The corresponding C function
  /// is `openat2` with `RESOLVE_NO_SYMLINKS`.
  ///
  /// - Throws: `.tooManyLinks` for a symbolic link, otherwise as in openat2(2); `.noFunction` or
  ///   `.notPermitted` if a sandbox refuses the call.
  package static func openWithoutLinks(
    _ path: String, _ options: OpenOptions
  ) throws(Errno) -> FileDescriptor {
    try open(path, at: Directory.current, options, resolving: csys_RESOLVE_NO_SYMLINKS)
  }
}

/// Creates a FIFO. The corresponding C function is `mkfifoat`; the umask applies.
package func makeFIFO(_ name: FileName, at directory: Int32, mode: UInt32 = 0o600) throws(Errno) {
  _ = try perform(.mkfifoat) { name.withCPath { mkfifoat(directory, $0, mode) } }
}

/// Creates a symbolic link. The corresponding C function is `symlinkat`.
///
/// - Parameter target: The path that the link points to, byte for byte.
package func makeSymbolicLink(
  _ name: FileName, at directory: Int32, target: FileName
) throws(Errno) {
  _ = try perform(.symlinkat) {
    target.withCPath { target in name.withCPath { symlinkat(target, directory, $0) } }
  }
}
