import Synchronization
import SystemCalls

/// Where the tests of one run keep what they make in one place, as TMPDIR.
///
/// It is removed when the process of the tests ends, however it ends, with the processes that work in
/// it: by a shell that outlives the process, because nobody else is there after a crash or SIGKILL.
final class RunDirectory: Sendable {
  let path: String
  /// While this is open, the shell waits.
  private let lifeline: SharedDescriptor
  private let shell: ShellBox

  private final class ShellBox: Sendable {
    let process: ChildProcess
    init(_ process: consuming ChildProcess) { self.process = process }
  }

  private static let all = Mutex<[String: Result<RunDirectory, any Error>]>([:])
  private static let count = Atomic(0)

  /// The run's directory in another one; the same for all of its tests.
  static func inside(_ parent: String) throws -> RunDirectory {
    try all.withLock { all in
      if let made = all[parent] { return try made.get() }
      let made = Result { try RunDirectory(parent) }
      all[parent] = made
      return try made.get()
    }
  }

  // A process that works in it has its path among the arguments or the environment.
  private static let removing = """
    cat >/dev/null
    for process in /proc/[0-9]*; do
      [ "$process" != "/proc/$$" ] && grep -qsF "$1" "$process/cmdline" "$process/environ" &&
        kill -KILL "${process#/proc/}"
    done 2>/dev/null
    for again in 1 2 3 4 5 6 7 8 9; do rm -rf "$1" && break || sleep 0.2; done 2>/dev/null
    """

  private init(_ parent: String) throws {
    path = "\(parent)/wormhole-test-\(Program.processID)-\(UInt32.random(in: .min ... .max))"
    // Others may pass: some tests are about other users.
    try makeDirectory(path, mode: 0o711)
    let pipe = try makePipe()
    let null = try FileDescriptor.open("/dev/null", .writeOnly)
    // In a session of its own, so that what ends the whole run does not end it.
    shell = ShellBox(
      try ChildProcess(
        "setsid", ["sh", "-c", Self.removing, "sh", path], input: pipe.read.rawValue,
        output: null.rawValue, errors: null.rawValue))
    lifeline = pipe.takeWrite()
  }

  /// A new name in it.
  func newPath() -> String {
    "\(path)/\(Self.count.add(1, ordering: .relaxed).oldValue)"
  }
}
