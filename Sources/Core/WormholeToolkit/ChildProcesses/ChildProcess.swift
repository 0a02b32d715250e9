import Glibc
import Synchronization
import WormholeShims
package import WormholeSystem

package enum Termination: Hashable, Sendable {
  case exited(Int32)
  case killed(signal: Int32)
}

/// A program that this process started and waits for. If this value is released before the end was
/// reported, the program runs on and is reaped when it ends.
package struct ChildProcess: ~Copyable, Sendable {
  package let processID: Int32
  private let handle: SharedDescriptor
  private let isReaped: Atomic<Bool>

  deinit {
    guard !isReaped.load(ordering: .acquiring) else { return }
    // A zombie would keep its number taken, and would disturb code that waits for any child. If no
    // thread is free, it stays one until this process ends.
    try? startThread(name: "child-reaper") { [handle] in
      // If it fails, other code has already reaped it, which is enough.
      _ = try? Self.reap(handle)
    }
  }

  private init(processID: Int32, handle: consuming FileDescriptor) {
    self.processID = processID
    self.handle = SharedDescriptor(handle)
    isReaped = Atomic(false)
  }

  /// Starts a program. The corresponding C functions are `clone` and `execve`.
  ///
  /// The child gets the three descriptors and no other, and the default action for every signal
  /// that programs here ignore. If this initializer throws, no program has run.
  ///
  /// - Parameters:
  ///   - program: A path, or a name to look up in PATH.
  ///   - arguments: The arguments without the program's own name.
  ///   - environment: The whole environment, as "NAME=value"; nil passes on this process's.
  ///   - inherited: The file that the program and its descendants have open as descriptor 10.
  ///   - directory: Its current directory, where a relative path to the program begins; nil for
  ///     this process's.
  ///   - endsWithParent: Whether the program is killed when the calling thread ends, at the latest
  ///     with its process (`PR_SET_PDEATHSIG`). Programs that it starts are not killed, and a
  ///     program that changes its user is exempt.
  /// - Throws: `.noSuchFile` and `.accessDenied` for the program, `.badFileDescriptor` if one of
  ///   the descriptors is not open, otherwise as in clone(2) and execve(2).
  package init(
    _ program: String, _ arguments: [String], environment: [String]? = nil,
    input: Int32 = 0, output: Int32 = 1, errors: Int32 = 2, inheriting inherited: Int32? = nil,
    in directory: Int32? = nil, endsWithParent: Bool = false
  ) throws(Errno) {
    let beginning = csys_beginning(
      standard: (input, output, errors), inherited: inherited ?? -1, output: nil,
      ends_with_parent: endsWithParent ? 1 : 0, directory: directory ?? -1)
    self = try Self.start(program, arguments, environment: environment, beginning: beginning)
  }

  /// Starts a program that outlives this one, in a session of its own, in the directory "/", with
  /// no input.
  ///
  /// - Parameters:
  ///   - path: The file that gets the program's output. The new process creates it before it
  ///     becomes the program. So the file shows that the process exists or existed, and if the file
  ///     cannot be created, no program is ever started.
  ///   - environment: The whole environment, as "NAME=value".
  /// - Throws: As the plain form, and the errors of open(2) with `O_CREAT | O_EXCL` for the file.
  package init(
    _ program: String, _ arguments: [String], environment: [String],
    detachedPrintingTo path: String
  ) throws(Errno) {
    // A closure could neither hand over a descriptor nor throw a typed error.
    let output: UnsafeMutablePointer<CChar>? = strdup(path)
    defer { free(output) }
    let beginning = csys_beginning(
      standard: (-1, -1, -1), inherited: -1, output: UnsafePointer(output), ends_with_parent: 0,
      directory: -1)
    self = try Self.start(program, arguments, environment: environment, beginning: beginning)
  }

  private static func start(
    _ program: String, _ arguments: [String], environment: [String]?,
    beginning: csys_beginning
  ) throws(Errno) -> ChildProcess {
    var beginning = beginning
    var handle: Int32 = -1
    let id = try perform(.spawn) {
      withCStrings([program] + arguments) { argv in
        guard let environment else {
          return csys_spawn(&beginning, program, argv, csys_environment(), &handle)
        }
        return withCStrings(environment, Program.copy(ofVariable:)) {
          csys_spawn(&beginning, program, argv, $0, &handle)
        }
      }
    }
    return ChildProcess(processID: id, handle: FileDescriptor(owning: handle))
  }

  /// A descriptor that becomes readable when the program has ended.
  package var descriptor: Int32 { handle.descriptor.rawValue }

  /// Waits for the program's end.
  ///
  /// - Parameter deadline: The instant to give up at.
  /// - Returns: How the program ended, or nil if it still runs at the deadline.
  /// - Throws: `.noChild` if its end was reported before.
  package func wait(until deadline: ContinuousClock.Instant) throws(Errno) -> Termination? {
    guard try waitReadable([descriptor], until: deadline)[0] else { return nil }
    let end = try Self.reap(handle)
    isReaped.store(true, ordering: .releasing)
    return end
  }

  // By descriptor, not by number: the number of a reaped child may belong to another process.
  static func reap(_ handle: SharedDescriptor) throws(Errno) -> Termination {
    let number = handle.descriptor.rawValue
    var status: Int32 = 0
    var signal: Int32 = 0
    _ = try perform(.waitid) { csys_wait_pidfd(number, &status, &signal) }
    return signal == 0 ? .exited(status) : .killed(signal: signal)
  }

  /// Sends a signal. The corresponding C function is `pidfd_send_signal`.
  ///
  /// - Throws: `.noSuchProcess` once the program's end was reported; another process with its
  ///   number never gets the signal.
  package func send(_ signal: Signal) throws(Errno) {
    try handle.descriptor.sendToProcess(signal)
  }
}

/// Ignores the signals that would kill the program for conditions that are errors here: a reader
/// that is gone (SIGPIPE) and a file that exceeds its limit (SIGXFSZ). Does not ignore SIGCHLD,
/// even if the parent did: the kernel would then keep no child's status. SIGQUIT ends the program.
package func prepareSignals() {
  // `signal` fails only for numbers that are not signals (signal(2)).
  _ = Glibc.signal(SIGPIPE, SIG_IGN)
  _ = Glibc.signal(SIGXFSZ, SIG_IGN)
  _ = Glibc.signal(SIGCHLD, SIG_DFL)
  // Swift's runtime takes it for a crash, unless the parent ignores it.
  let old = Glibc.signal(SIGQUIT, SIG_DFL)
  if unsafeBitCast(old, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
    _ = Glibc.signal(SIGQUIT, SIG_IGN)
  }
}

private func withCStrings<Result>(
  _ strings: [String], _ copy: (String) -> UnsafeMutablePointer<CChar>? = { strdup($0) },
  _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
  var pointers = strings.map(copy)
  pointers.append(nil)
  defer { for pointer in pointers { free(pointer) } }
  return body(pointers)
}
