import CSystemCalls
import Glibc

/// How a process ended.
package enum Termination: Hashable, Sendable {
  case exited(Int32)
  case killed(signal: Int32)
}

/// A signal. The C names are in `signal(7)`.
package enum Signal: Int32, Sendable {
  case hangUp = 1
  case interrupt = 2
  case quit = 3
  case kill = 9
  case brokenPipe = 13
  case terminate = 15
  case `continue` = 18
  case stop = 19
  case fileTooLarge = 25
  case windowChanged = 28
}

/// A program that this process started and waits for; one that nobody waits for stays a zombie.
package struct ChildProcess: ~Copyable, Sendable {
  package let processID: Int32
  private let handle: FileDescriptor

  /// Starts a program. The corresponding C function is `posix_spawn`.
  ///
  /// The child gets the three descriptors and nothing else of ours, and the default action for
  /// every signal that programs here ignore.
  ///
  /// - Parameters:
  ///   - program: a path, or a name to look up in PATH.
  ///   - arguments: without the program's own name.
  ///   - environment: the whole environment, as "NAME=value"; nil passes on this process's.
  /// - Throws: `.noSuchFile` and `.accessDenied` for the program, `.badFileDescriptor` when one of
  ///   the three is not open, otherwise as in posix_spawn(3).
  package init(
    _ program: String, _ arguments: [String], environment: [String]? = nil,
    input: Int32 = 0, output: Int32 = 1, errors: Int32 = 2
  ) throws(Errno) {
    let child = try Self.spawn(program, arguments, environment, [input, output, errors])
    handle = try Self.handle(of: child)
    processID = child
  }

  /// Starts a program that is to outlive this one: in a session of its own, in the directory "/",
  /// with nothing to read.
  ///
  /// - Parameters:
  ///   - path: the file that gets what it prints. The new process makes it, before it becomes the
  ///     program: a file there shows that the process exists or did, and where none can be made no
  ///     program is ever started.
  ///   - environment: the whole environment, as "NAME=value".
  /// - Throws: as the plain form, and what open(2) with `O_CREAT | O_EXCL` says of the file.
  package init(
    _ program: String, _ arguments: [String], environment: [String],
    detachedPrintingTo path: String
  ) throws(Errno) {
    let child = try Self.spawn(program, arguments, environment, printingTo: path)
    handle = try Self.handle(of: child)
    processID = child
  }

  private static func handle(of child: Int32) throws(Errno) -> FileDescriptor {
    do throws(Errno) {
      return FileDescriptor(owning: try perform(.pidfdOpen) { csys_pidfd_open(child) })
    } catch {
      // Nobody could wait for it. It is our child and not reaped, so the number is still its own.
      _ = Glibc.kill(child, SIGKILL)
      _ = Glibc.waitpid(child, nil, 0)
      throw error
    }
  }

  private static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String]?, _ standard: [Int32]
  ) throws(Errno) -> Int32 {
    // A standard descriptor that becomes another one moves out of the way first, so that no dup2
    // in the child overwrites one that is still needed. These copies close with this function.
    var copies: [SharedDescriptor] = []
    var actions = posix_spawn_file_actions_t()
    try check(posix_spawn_file_actions_init(&actions))
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (index, descriptor) in standard.enumerated() {
      let target = Int32(index)
      var source = descriptor
      if (0...2).contains(source), source != target {
        let copy = SharedDescriptor(
          FileDescriptor(
            owning: try perform(.duplicate) { csys_duplicate_above_standard(descriptor) }))
        source = copy.descriptor.rawValue
        copies.append(copy)
      }
      // Clears close-on-exec, also of a descriptor that stays where it is.
      try check(posix_spawn_file_actions_adddup2(&actions, source, target))
    }
    return try withExtendedLifetime(copies) { () throws(Errno) -> Int32 in
      try start(program, arguments, environment, &actions, flags: 0)
    }
  }

  private static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String], printingTo path: String
  ) throws(Errno) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    try check(posix_spawn_file_actions_init(&actions))
    defer { posix_spawn_file_actions_destroy(&actions) }
    let creating = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW
    try check(posix_spawn_file_actions_addopen(&actions, 1, path, creating, 0o600))
    try check(posix_spawn_file_actions_adddup2(&actions, 1, 2))
    try check(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0))
    try check(csys_change_directory_in_child(&actions, "/"))
    return try start(program, arguments, environment, &actions, flags: Int32(csys_SPAWN_SETSID))
  }

  private static func setSignals(
    _ attributes: inout posix_spawnattr_t, flags: Int32
  ) throws(Errno) {
    var defaults = sigset_t()
    sigemptyset(&defaults)
    sigaddset(&defaults, SIGPIPE)
    sigaddset(&defaults, SIGXFSZ)
    var none = sigset_t()
    sigemptyset(&none)
    try check(posix_spawnattr_setsigdefault(&attributes, &defaults))
    try check(posix_spawnattr_setsigmask(&attributes, &none))
    let flags = Int32(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) | flags
    try check(posix_spawnattr_setflags(&attributes, Int16(flags)))
  }

  private static func start(
    _ program: String, _ arguments: [String], _ environment: [String]?,
    _ actions: inout posix_spawn_file_actions_t, flags: Int32
  ) throws(Errno) -> Int32 {
    // Also what others in this process opened without close-on-exec.
    try check(csys_close_in_child(&actions, 3))
    var attributes = posix_spawnattr_t()
    try check(posix_spawnattr_init(&attributes))
    defer { posix_spawnattr_destroy(&attributes) }
    try setSignals(&attributes, flags: flags)
    var id: pid_t = 0
    _ = try perform(.spawn) {
      withCStrings([program] + arguments) { argv in
        guard let environment else {
          return reportedByErrno(
            posix_spawnp(&id, program, &actions, &attributes, argv, csys_environment()))
        }
        return withCStrings(environment) { envp in
          reportedByErrno(posix_spawnp(&id, program, &actions, &attributes, argv, envp))
        }
      }
    }
    return id
  }

  // The functions that prepare a spawn fail without memory, or for wrong arguments.
  private static func check(_ failure: Int32) throws(Errno) {
    guard failure == 0 else { throw Errno(rawValue: failure) }
  }

  /// Can be read when the program has ended.
  package var descriptor: Int32 { handle.rawValue }

  /// Waits for the program's end.
  ///
  /// - Parameter deadline: when to give up.
  /// - Returns: how it ended, or nil when the deadline passed and it still runs.
  /// - Throws: `.noChild` when its end was told before.
  package func wait(until deadline: ContinuousClock.Instant) throws(Errno) -> Termination? {
    guard try waitReadable([handle.rawValue], until: deadline)[0] else { return nil }
    return try reap()
  }

  // By descriptor, not by number: the number of a child that was waited for may be another's.
  private func reap() throws(Errno) -> Termination {
    var status: Int32 = 0
    var signal: Int32 = 0
    _ = try perform(.waitid) { csys_wait_pidfd(handle.rawValue, &status, &signal) }
    return signal == 0 ? .exited(status) : .killed(signal: signal)
  }

  /// Sends a signal. The corresponding C function is `pidfd_send_signal`.
  ///
  /// - Throws: `.noSuchProcess` once its end was waited for; its number is never hit by mistake.
  package func send(_ signal: Signal) throws(Errno) {
    _ = try perform(.pidfdSendSignal) { csys_pidfd_send_signal(handle.rawValue, signal.rawValue) }
  }
}

/// Makes a pipe whose ends are close-on-exec. The corresponding C function is `pipe2`.
package func makePipe() throws(Errno) -> PipeEnds {
  var ends: (Int32, Int32) = (-1, -1)
  _ = try perform(.pipe) {
    withUnsafeMutablePointer(to: &ends) {
      $0.withMemoryRebound(to: Int32.self, capacity: 2) { csys_pipe($0) }
    }
  }
  return PipeEnds(
    read: FileDescriptor(owning: ends.0), write: FileDescriptor(owning: ends.1))
}

/// The two ends of a pipe.
package struct PipeEnds: ~Copyable {
  package let read: FileDescriptor
  package let write: FileDescriptor

  /// Keeps the end to read from and closes the other.
  package consuming func takeRead() -> SharedDescriptor { SharedDescriptor(read) }

  /// Keeps the end to write to and closes the other.
  package consuming func takeWrite() -> SharedDescriptor { SharedDescriptor(write) }
}

/// Ignores the signals whose default would kill the program for what is an error here: a reader
/// that went away (SIGPIPE) and a file that grew beyond its limit (SIGXFSZ).
package func ignoreFatalWriteSignals() {
  // `signal` fails only for numbers that are no signals (signal(2)).
  _ = Glibc.signal(SIGPIPE, SIG_IGN)
  _ = Glibc.signal(SIGXFSZ, SIG_IGN)
}

private func withCStrings<Result>(
  _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
  var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
  pointers.append(nil)
  defer { for pointer in pointers { free(pointer) } }
  return body(pointers)
}
