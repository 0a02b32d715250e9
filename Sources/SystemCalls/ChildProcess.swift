import CSystemCalls
import Glibc
import Synchronization

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

/// A program that this process started and waits for. One that is let go of before its end was told
/// runs on, and is reaped when it ends.
package struct ChildProcess: ~Copyable, Sendable {
  package let processID: Int32
  private let handle: SharedDescriptor
  private let isReaped: Atomic<Bool>

  deinit {
    if !isReaped.load(ordering: .acquiring) { ChildReaper.take(handle) }
  }

  private init(processID: Int32, handle: consuming FileDescriptor) {
    self.processID = processID
    self.handle = SharedDescriptor(handle)
    isReaped = Atomic(false)
  }

  /// Starts a program. The corresponding C functions are `clone` and `execve`.
  ///
  /// The child gets the three descriptors and nothing else of ours, and the default action for
  /// every signal that programs here ignore. Where this throws, no program has run.
  ///
  /// - Parameters:
  ///   - program: a path, or a name to look up in PATH.
  ///   - arguments: without the program's own name.
  ///   - environment: the whole environment, as "NAME=value"; nil passes on this process's.
  ///   - inherited: what the program, and what it starts, have open as descriptor 10.
  ///   - endsWithParent: whether it is killed when the thread that calls this ends, with its process
  ///     or before (`PR_SET_PDEATHSIG`). What the program itself has started is not, and a program that
  ///     changes its user is free of it.
  /// - Throws: `.noSuchFile` and `.accessDenied` for the program, `.badFileDescriptor` when one of
  ///   the descriptors is not open, otherwise as in clone(2) and execve(2).
  package init(
    _ program: String, _ arguments: [String], environment: [String]? = nil,
    input: Int32 = 0, output: Int32 = 1, errors: Int32 = 2, inheriting inherited: Int32? = nil,
    endsWithParent: Bool = false
  ) throws(Errno) {
    let beginning = csys_beginning(
      standard: (input, output, errors), inherited: inherited ?? -1, output: nil,
      ends_with_parent: endsWithParent ? 1 : 0)
    self = try Self.start(program, arguments, environment, beginning)
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
    // No closure here: it could not hand over a descriptor, nor an error by its type.
    let output: UnsafeMutablePointer<CChar>? = strdup(path)
    defer { free(output) }
    let beginning = csys_beginning(
      standard: (-1, -1, -1), inherited: -1, output: UnsafePointer(output), ends_with_parent: 0)
    self = try Self.start(program, arguments, environment, beginning)
  }

  private static func start(
    _ program: String, _ arguments: [String], _ environment: [String]?,
    _ beginning: csys_beginning
  ) throws(Errno) -> ChildProcess {
    var beginning = beginning
    var handle: Int32 = -1
    let id = try perform(.spawn) {
      withCStrings([program] + arguments) { argv in
        guard let environment else {
          return csys_spawn(&beginning, program, argv, csys_environment(), &handle)
        }
        return withCStrings(environment) { csys_spawn(&beginning, program, argv, $0, &handle) }
      }
    }
    return ChildProcess(processID: id, handle: FileDescriptor(owning: handle))
  }

  /// Can be read when the program has ended.
  package var descriptor: Int32 { handle.descriptor.rawValue }

  /// Waits for the program's end.
  ///
  /// - Parameter deadline: when to give up.
  /// - Returns: how it ended, or nil when the deadline passed and it still runs.
  /// - Throws: `.noChild` when its end was told before.
  package func wait(until deadline: ContinuousClock.Instant) throws(Errno) -> Termination? {
    guard try waitReadable([descriptor], until: deadline)[0] else { return nil }
    let end = try Self.reap(handle)
    isReaped.store(true, ordering: .releasing)
    return end
  }

  // By descriptor, not by number: the number of a child that was waited for may be another's.
  static func reap(_ handle: SharedDescriptor) throws(Errno) -> Termination {
    let number = handle.descriptor.rawValue
    var status: Int32 = 0
    var signal: Int32 = 0
    _ = try perform(.waitid) { csys_wait_pidfd(number, &status, &signal) }
    return signal == 0 ? .exited(status) : .killed(signal: signal)
  }

  /// Sends a signal. The corresponding C function is `pidfd_send_signal`.
  ///
  /// - Throws: `.noSuchProcess` once its end was waited for; its number is never hit by mistake.
  package func send(_ signal: Signal) throws(Errno) {
    try handle.descriptor.sendToProcess(signal)
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
