import Glibc
import WormholeShims

/// An open file of this process: owned once, closed exactly once, never inherited by a program that
/// this process starts.
///
/// The descriptor is closed when its owner is released; `close()` closes it earlier and throws the
/// error that the kernel reports. Every open in this module sets close-on-exec.
package struct FileDescriptor: ~Copyable, Sendable {
  package let rawValue: Int32

  /// Takes ownership of an open descriptor.
  package init(owning rawValue: Int32) {
    self.rawValue = rawValue
  }

  deinit {
    // The owner was released without asking for the outcome, so no caller needs the error.
    try? Self.closeOnce(rawValue)
  }

  /// Closes the file. Never retried: on Linux the descriptor is gone even after EINTR (close(2)).
  package consuming func close() throws(Errno) {
    let descriptor = rawValue
    discard self
    try Self.closeOnce(descriptor)
  }

  private static func closeOnce(_ descriptor: Int32) throws(Errno) {
    var isOpen = true
    // As in the kernel, an injected failure is only reported: the descriptor is still gone.
    defer { if isOpen { _ = Glibc.close(descriptor) } }
    _ = try perform(.close, retryOnInterrupt: false) {
      isOpen = false
      return Glibc.close(descriptor)
    }
  }
}

/// The options for opening a file; close-on-exec is always added. The C names are in `open(2)`.
package struct OpenOptions: OptionSet, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  // `SetAlgebra`'s general form is not specialized across modules and takes half a microsecond.
  package init(arrayLiteral options: OpenOptions...) {
    rawValue = options.reduce(0) { $0 | $1.rawValue }
  }

  package static let readOnly = OpenOptions(rawValue: O_RDONLY)
  package static let writeOnly = OpenOptions(rawValue: O_WRONLY)
  package static let readWrite = OpenOptions(rawValue: O_RDWR)
  package static let create = OpenOptions(rawValue: O_CREAT)
  package static let exclusive = OpenOptions(rawValue: O_EXCL)
  package static let truncate = OpenOptions(rawValue: O_TRUNC)
  package static let append = OpenOptions(rawValue: O_APPEND)
  package static let directory = OpenOptions(rawValue: O_DIRECTORY)
  package static let noFollow = OpenOptions(rawValue: O_NOFOLLOW)
  package static let nonBlocking = OpenOptions(rawValue: O_NONBLOCK)
  /// Refers to a file without opening it (`O_PATH`).
  package static let pathOnly = OpenOptions(rawValue: Int32(csys_O_PATH))
}

/// The directory that relative paths start from.
package enum Directory {
  /// `AT_FDCWD`: the process's current directory; absolute paths ignore it.
  package static let current = AT_FDCWD
}

extension FileDescriptor {
  /// Opens a file. The corresponding C function is `openat`.
  ///
  /// - Throws: `Errno` as in open(2). With `.nonBlocking`, opening a FIFO whose other end is not
  ///   open never blocks.
  package static func open(
    _ path: some PathText, at directory: Int32 = Directory.current, _ options: OpenOptions,
    mode: UInt32 = 0o600
  ) throws(Errno) -> FileDescriptor {
    let raw = try perform(.openat) {
      path.withCPath(at: directory) { Glibc.openat($0, $1, options.rawValue | O_CLOEXEC, mode) }
    }
    return FileDescriptor(owning: raw)
  }

  /// Opens a file below a directory; the path has no ".." and no symbolic link.
  ///
  /// The corresponding C function is `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`;
  /// where a sandbox refuses it, the path is walked component by component with `O_NOFOLLOW`.
  ///
  /// - Throws: `.tooManyLinks` for a symbolic link, `.crossesDevices` for a path that leaves the
  ///   directory, otherwise as in open(2).
  package static func openBeneath(
    _ path: String, at directory: Int32, _ options: OpenOptions, mode: UInt32 = 0o600
  ) throws(Errno) -> FileDescriptor {
    try refuseEscape(path)
    do throws(Errno) {
      return try open(
        path, at: directory, options, mode: options.contains(.create) ? mode : 0,
        resolving: csys_RESOLVE_BENEATH | csys_RESOLVE_NO_SYMLINKS)
    } catch {
      guard error == .noFunction || error == .notPermitted else { throw error }
      return try walk(path, at: directory, options, mode: mode)
    }
  }

  /// Opens a path that the kernel resolves by rules. The corresponding C function is `openat2`.
  @inline(__always)
  static func open(
    _ path: some PathText, at directory: Int32, _ options: OpenOptions, mode: UInt32 = 0,
    resolving rules: Int
  ) throws(Errno) -> FileDescriptor {
    let raw = try perform(.openat2) {
      path.withCPath {
        csys_openat2(
          directory, $0, UInt64(UInt32(bitPattern: options.rawValue | O_CLOEXEC)), UInt64(mode),
          UInt64(rules))
      }
    }
    return FileDescriptor(owning: raw)
  }

  // RESOLVE_BENEATH would accept "a/../b", which no caller needs.
  private static func refuseEscape(_ path: String) throws(Errno) {
    guard path.utf8.first != UInt8(ascii: "/") else { throw .crossesDevices }
    // Hardly any path has two dots in a row, and the others need no array.
    guard path.withCString({ strstr($0, "..") }) != nil else { return }
    let dot = UInt8(ascii: ".")
    let components = path.utf8.split(separator: UInt8(ascii: "/"))
    guard !components.contains(where: { $0.elementsEqual([dot, dot]) }) else {
      throw .crossesDevices
    }
  }

  private static func walk(
    _ path: String, at directory: Int32, _ options: OpenOptions, mode: UInt32
  ) throws(Errno) -> FileDescriptor {
    var components = path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    guard let last = components.popLast() else { throw .noSuchFile }
    var options = options
    if path.utf8.last == UInt8(ascii: "/") {
      // "name/" can only be a directory, and open(2) never creates a directory.
      guard !options.contains(.create) else { throw .isDirectory }
      options.insert(.directory)
    }
    guard let first = components.first else {
      return try step(last, at: directory, options, mode: mode)
    }
    var parent = try step(first, at: directory, [.pathOnly, .directory])
    for component in components.dropFirst() {
      parent = try step(component, at: parent.rawValue, [.pathOnly, .directory])
    }
    return try step(last, at: parent.rawValue, options, mode: mode)
  }

  // Opens one component. With O_NOFOLLOW alone a symbolic link is ELOOP; O_DIRECTORY makes that
  // ENOTDIR, and O_PATH makes it a success, the link itself (open(2)).
  private static func step(
    _ name: String, at directory: Int32, _ options: OpenOptions, mode: UInt32 = 0
  ) throws(Errno) -> FileDescriptor {
    do throws(Errno) {
      let file = try open(name, at: directory, options.union(.noFollow), mode: mode)
      guard options.contains(.pathOnly), try file.status().kind == .symbolicLink else {
        return file
      }
    } catch {
      guard error == .notDirectory, try fileStatus(name, at: directory).kind == .symbolicLink
      else { throw error }
    }
    throw .tooManyLinks
  }
}

/// An open file with several owners in this process; the last owner closes it.
package final class SharedDescriptor: Sendable {
  package let descriptor: FileDescriptor

  package init(_ descriptor: consuming FileDescriptor) {
    self.descriptor = descriptor
  }
}
