import Glibc
package import WormholeSystem

extension FileDescriptor {
  /// Connects to a Unix socket, for bytes in order. The corresponding C functions are `socket` and
  /// `connect`.
  ///
  /// - Parameter path: At most 107 bytes (unix(7)).
  /// - Throws: `.fileNameTooLong` for a longer path; `.noSuchFile` or ECONNREFUSED if no process
  ///   listens there.
  package static func connected(toSocket path: String) throws(Errno) -> FileDescriptor {
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let number = socket(AF_UNIX, type, 0)
    guard number != -1 else { throw Errno(rawValue: errno) }
    let made = FileDescriptor(owning: number)
    try made.connect(to: path)
    return made
  }
}

// The floors of the benchmarks wait in the kernel. The library has no such forms on purpose: a
// stopped process on the other side would block their caller forever.
extension FileDescriptor {
  /// Takes the file's lock, waiting as long as another open file has it. The corresponding C function
  /// is `flock`.
  package func lockBlocking(_ mode: LockMode) throws(Errno) {
    let operation = mode == .exclusive ? LOCK_EX : LOCK_SH
    _ = try perform(.flock) { flock(rawValue, operation) }
  }

  /// Makes an event queue whose reads wait for an event. The C function is `inotify_init1`.
  package static func blockingEventQueue() throws(Errno) -> FileDescriptor {
    FileDescriptor(owning: try perform(.inotifyInit) { inotify_init1(Int32(IN_CLOEXEC)) })
  }
}

/// A shared library that is used if it is installed, and on which nothing here depends. It stays
/// loaded until the process ends. The corresponding C functions are `dlopen` and `dlsym`.
package struct DynamicLibrary: Sendable {
  // An address, which is valid in every thread.
  private let handle: UInt

  /// - Returns: nil if there is no such library.
  package init?(_ name: String) {
    guard let handle = dlopen(name, RTLD_NOW) else { return nil }
    self.handle = UInt(bitPattern: handle)
  }

  /// Returns a function of the library.
  ///
  /// - Parameter type: Its type in C (`@convention(c)`); only the caller can know that it is right.
  /// - Returns: nil if the library has no such function.
  package func function<Function>(_ name: String, as type: Function.Type) -> Function? {
    precondition(
      MemoryLayout<Function>.size == MemoryLayout<UInt>.size, "a C function is an address")
    guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: handle), name) else { return nil }
    return unsafeBitCast(address, to: type)
  }
}

/// Runs a program without input or output, and waits for its end.
///
/// - Throws: An error that names it if it does not succeed.
package func runQuietly(
  _ program: String, _ arguments: [String], environment: [String] = Program.environment
) throws {
  let null = try FileDescriptor.open("/dev/null", .readWrite)
  let child = try ChildProcess(
    program, arguments, environment: environment, input: null.rawValue, output: null.rawValue,
    errors: null.rawValue)
  guard try child.wait(until: .now + .seconds(60)) == .exited(0) else {
    throw Failure(description: "\(program) failed: \(arguments)")
  }
}

/// Removes a directory and everything in it.
package func removeTree(_ path: String) throws {
  let name = FileName(path.split(separator: "/").last.map(String.init) ?? "")
  let parent = try FileDescriptor.open(path + "/..", [.readOnly, .directory])
  try TreeRemoval().remove(name, at: parent.rawValue)
}

/// Returns the whole content of a file.
package func textOfFile(_ path: String) throws(Errno) -> String {
  let file = try FileDescriptor.open(path, .readOnly)
  let size = Int(try file.status().size)
  return String(
    decoding: try file.readToEnd(expectedBytes: size, maximumBytes: 4 << 30), as: UTF8.self)
}
