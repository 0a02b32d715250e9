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
  case kill = 9
  case brokenPipe = 13
  case terminate = 15
  case `continue` = 18
  case stop = 19
  case fileTooLarge = 25
}

/// A program that this process started and waits for.
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
  /// - Throws: `.noSuchFile` and `.accessDenied` for the program, otherwise as in posix_spawn(3).
  package init(
    _ program: String, _ arguments: [String], environment: [String]? = nil,
    input: Int32 = 0, output: Int32 = 1, errors: Int32 = 2
  ) throws(Errno) {
    let child = try Self.spawn(program, arguments, environment, [input, output, errors])
    let descriptor = try perform(.pidfdOpen) { csys_pidfd_open(child) }
    processID = child
    handle = FileDescriptor(owning: descriptor)
  }

  private static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String]?, _ standard: [Int32]
  ) throws(Errno) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // Through numbers of their own first, so that no dup2 overwrites one that is still needed; a
    // dup2 onto another number clears close-on-exec (dup2(2)). The next ones, so that a low limit
    // of descriptors does not forbid them; a file of ours that has such a number is closed anyway.
    let first = max(2, standard.max() ?? 2) + 1
    for (index, descriptor) in standard.enumerated() {
      posix_spawn_file_actions_adddup2(&actions, descriptor, first + Int32(index))
    }
    for index in 0..<Int32(3) {
      posix_spawn_file_actions_adddup2(&actions, first + index, index)
    }
    for index in 0..<Int32(3) { posix_spawn_file_actions_addclose(&actions, first + index) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var defaults = sigset_t()
    sigemptyset(&defaults)
    sigaddset(&defaults, SIGPIPE)
    sigaddset(&defaults, SIGXFSZ)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))

    var id: pid_t = 0
    _ = try perform(.spawn) {
      let failure = withCStrings([program] + arguments) { argv in
        guard let environment else {
          return posix_spawnp(&id, program, &actions, &attributes, argv, csys_environment())
        }
        return withCStrings(environment) { envp in
          posix_spawnp(&id, program, &actions, &attributes, argv, envp)
        }
      }
      if failure != 0 { errno = failure }
      return failure == 0 ? 0 : -1
    }
    return id
  }

  /// Waits for the program's end.
  ///
  /// - Parameter deadline: when to give up.
  /// - Returns: how it ended, or nil when the deadline passed and it still runs.
  package func wait(until deadline: ContinuousClock.Instant) throws(Errno) -> Termination? {
    guard try waitReadable([handle.rawValue], until: deadline)[0] else { return nil }
    return try reap()
  }

  private func reap() throws(Errno) -> Termination {
    var status: Int32 = 0
    _ = try perform(.waitpid) { waitpid(processID, &status, 0) }
    let signal = status & 0x7f
    return signal == 0 ? .exited((status >> 8) & 0xff) : .killed(signal: signal)
  }

  /// Sends a signal. The corresponding C function is `kill`.
  package func send(_ signal: Signal) throws(Errno) {
    _ = try perform(.kill) { Glibc.kill(processID, signal.rawValue) }
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
