import CSystemCalls
import Glibc

/// An open file of this process: owned once, closed exactly once, never inherited by a program
/// that this one starts.
///
/// The descriptor is closed when its owner goes away; `close()` does it earlier and tells whether
/// the kernel reported an error. Every open in this module sets close-on-exec.
package struct FileDescriptor: ~Copyable, Sendable {
  package let rawValue: Int32

  /// Takes over an open descriptor.
  package init(owning rawValue: Int32) {
    self.rawValue = rawValue
  }

  deinit {
    // The owner went away without asking for the outcome: there is nobody to tell.
    _ = Glibc.close(rawValue)
  }

  /// Closes the file. Never retried: on Linux the descriptor is gone even after EINTR (close(2)).
  package consuming func close() throws(Errno) {
    let descriptor = rawValue
    discard self
    _ = try perform(.close, retryOnInterrupt: false) { Glibc.close(descriptor) }
  }
}

/// How a file is opened; close-on-exec is always added. The C names are in `open(2)`.
package struct OpenOptions: OptionSet, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  // The general form of `SetAlgebra` is not specialised across modules: half a microsecond each.
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
  /// Names a file without opening it (`O_PATH`).
  package static let pathOnly = OpenOptions(rawValue: Int32(csys_O_PATH))
}

/// The place that relative paths start from.
package enum Directory {
  /// `AT_FDCWD`: the process's current directory; absolute paths ignore it.
  package static let current = AT_FDCWD
}

extension FileDescriptor {
  /// Opens a file. The corresponding C function is `openat`.
  ///
  /// - Throws: `Errno` as in open(2); a FIFO with nobody at its other end never blocks as long as
  ///   `.nonBlocking` is among the options.
  package static func open(
    _ path: String, at directory: Int32 = Directory.current, _ options: OpenOptions,
    mode: UInt32 = 0o600
  ) throws(Errno) -> FileDescriptor {
    let raw = try perform(.openat) {
      path.withCString { Glibc.openat(directory, $0, options.rawValue | O_CLOEXEC, mode) }
    }
    return FileDescriptor(owning: raw)
  }

  /// Opens a file below a directory: no "..", no symbolic link anywhere on the way.
  ///
  /// The corresponding C function is `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`;
  /// where a sandbox refuses it, the path is walked component by component with `O_NOFOLLOW`.
  ///
  /// - Throws: `.tooManyLinks` for a symbolic link, `.crossesDevices` for a path that leaves the
  ///   directory, otherwise as in open(2).
  package static func openBeneath(
    _ path: String, at directory: Int32, _ options: OpenOptions, mode: UInt32 = 0o600
  ) throws(Errno) -> FileDescriptor {
    do throws(Errno) {
      let creates = options.contains(.create)
      let raw = try perform(.openat2) {
        path.withCString {
          csys_openat2(
            directory, $0, UInt64(UInt32(bitPattern: options.rawValue | O_CLOEXEC)),
            creates ? UInt64(mode) : 0,
            UInt64(csys_RESOLVE_BENEATH | csys_RESOLVE_NO_SYMLINKS))
        }
      }
      return FileDescriptor(owning: raw)
    } catch {
      guard error == .noFunction || error == .notPermitted else { throw error }
      return try walk(path, at: directory, options, mode: mode)
    }
  }

  private static func walk(
    _ path: String, at directory: Int32, _ options: OpenOptions, mode: UInt32
  ) throws(Errno) -> FileDescriptor {
    let components = path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    guard let last = components.last, !path.utf8.starts(with: "/".utf8),
      !components.contains("..")
    else { throw .crossesDevices }
    guard let first = components.dropLast().first else {
      return try open(last, at: directory, options.union(.noFollow), mode: mode)
    }
    let step: OpenOptions = [.pathOnly, .directory, .noFollow]
    var parent = try open(first, at: directory, step)
    for component in components.dropFirst().dropLast() {
      parent = try open(component, at: parent.rawValue, step)
    }
    return try open(last, at: parent.rawValue, options.union(.noFollow), mode: mode)
  }
}

/// An open file with several owners in this process; closed when the last of them goes away.
package final class SharedDescriptor: Sendable {
  package let descriptor: FileDescriptor

  package init(_ descriptor: consuming FileDescriptor) {
    self.descriptor = descriptor
  }
}
