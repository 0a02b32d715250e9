import Glibc
package import WormholeSystem
import WormholeToolkit

extension FileDescriptor {
  /// Connects to a Unix socket, for bytes in order. The corresponding C functions are `socket` and
  /// `connect`.
  ///
  /// - Parameter path: At most 107 bytes (unix(7)).
  /// - Throws: `.fileNameTooLong` for a longer path; `.noSuchFile` or ECONNREFUSED if no process
  ///   listens there.
  package static func connected(toSocket path: String) throws(Errno) -> FileDescriptor {
    let made = try streamSocket(AF_UNIX)
    try made.connect(to: path)
    return made
  }

  private static func streamSocket(_ family: Int32) throws(Errno) -> FileDescriptor {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    return FileDescriptor(owning: try checked(socket(family, type, 0)))
  }
}

/// Returns the result of a C function, unless it is -1, which means an error.
private func checked(_ result: Int32) throws(Errno) -> Int32 {
  guard result != -1 else { throw Errno(rawValue: errno) }
  return result
}

// The floors of the benchmarks wait in the kernel. The library deliberately has no such forms: a
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

/// Returns a function of a shared library that is used if it is installed, and on which nothing here depends.
/// The library stays loaded until the process ends. The corresponding C functions are `dlopen` and `dlsym`.
///
/// - Parameter type: Its type in C (`@convention(c)`); only the caller can know that it is right.
/// - Returns: nil if there is no such library, or it has no such function.
package func function<Function>(
  _ name: String, of library: String, as type: Function.Type
) -> Function? {
  precondition(
    MemoryLayout<Function>.size == MemoryLayout<UInt>.size, "a C function is an address")
  guard let library = dlopen(library, RTLD_NOW), let address = dlsym(library, name) else {
    return nil
  }
  return unsafeBitCast(address, to: type)
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

extension Errno {
  static let addressInUse = Errno(rawValue: EADDRINUSE)
}

// TCP on this machine, for measured or disturbed servers.
extension FileDescriptor {
  private static func withAddress(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws(Errno) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    address.sin_port = port.bigEndian
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
    _ = try checked(result)
  }

  /// Connects to a port of this machine, without gathering small writes. The corresponding C
  /// functions are `socket`, `connect` and `setsockopt`.
  ///
  /// - Parameter endpoint: "http://127.0.0.1:2379".
  package static func connected(to endpoint: String) throws(Errno) -> FileDescriptor {
    guard let port = endpoint.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw .invalidArgument
    }
    let made = try streamSocket(AF_INET)
    try withAddress(port) { Glibc.connect(made.rawValue, $0, $1) }
    var isOn: Int32 = 1
    let length = socklen_t(MemoryLayout<Int32>.size)
    _ = try checked(setsockopt(made.rawValue, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, length))
    return made
  }

  /// Listens on a port of this machine. The corresponding C functions are `bind` and `listen`.
  ///
  /// - Throws: `.addressInUse`.
  static func listening(onPort port: UInt16) throws(Errno) -> FileDescriptor {
    let made = try streamSocket(AF_INET)
    try withAddress(port) { address, length in
      bind(made.rawValue, address, length) == -1 ? -1 : listen(made.rawValue, 64)
    }
    return made
  }

  /// Waits for a connection. Programs that are started do not inherit it
  /// (`ChildProcess`). The corresponding C function is `accept`.
  ///
  /// - Throws: Also once `endConnection` was called for this descriptor.
  func acceptConnection() throws(Errno) -> FileDescriptor {
    while true {
      let number = accept(rawValue, nil, nil)
      if number != -1 { return FileDescriptor(owning: number) }
      // The other side may be gone again.
      guard errno == EINTR || errno == ECONNABORTED else { throw Errno(rawValue: errno) }
    }
  }

  /// Ends a connection for both sides, even for threads that wait for it. The corresponding C
  /// function is `shutdown`.
  func endConnection() {
    // It fails if the connection has already ended.
    _ = shutdown(rawValue, Int32(SHUT_RDWR))
  }

  /// Sends all bytes; the end of the other side is an error, not a signal. The corresponding C
  /// function is `send`.
  func sendAll(_ bytes: [UInt8]) throws(Errno) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Errno(rawValue: errno) }
      rest = rest.dropFirst(count)
    }
  }
}
