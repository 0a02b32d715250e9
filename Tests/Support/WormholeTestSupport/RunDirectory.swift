import Synchronization
import WormholeEtcd
import WormholeSystem
import WormholeToolkit

/// The directory of all temporary files of one test run, under TMPDIR.
///
/// It is removed when the testing process ends, however it ends, together with the processes that
/// work in it. A shell that outlives the process does this, because no other process remains after
/// a crash or SIGKILL.
final class RunDirectory: Sendable {
  let path: String
  /// The shell waits while this is open.
  private let lifeline: SharedDescriptor
  private let shell: ShellBox

  private final class ShellBox: Sendable {
    let process: ChildProcess
    init(_ process: consuming ChildProcess) { self.process = process }
  }

  private static let all = Mutex<[String: Result<RunDirectory, any Error>]>([:])
  private static let count = Atomic(0)

  /// Returns the run's directory in another one; the same for all of its tests.
  static func inside(_ parent: String) throws -> RunDirectory {
    try all.withLock { all in
      if let made = all[parent] { return try made.get() }
      let made = Result { try RunDirectory(parent) }
      all[parent] = made
      return try made.get()
    }
  }

  // A process that works in it has its path among its arguments or its environment.
  private static let removing = """
    cat >/dev/null
    for process in /proc/[0-9]*; do
      [ "$process" != "/proc/$$" ] && grep -qsF "$1" "$process/cmdline" "$process/environ" &&
        kill -KILL "${process#/proc/}"
    done 2>/dev/null
    for again in 1 2 3 4 5 6 7 8 9; do rm -rf "$1" && break || sleep 0.2; done 2>/dev/null
    """

  private init(_ parent: String) throws {
    // Each test that has a container comes here first.
    EtcdEngine.register()
    path = "\(parent)/wormhole-test-\(Program.processID)-\(UInt32.random(in: .min ... .max))"
    // Others may pass through, because some tests are about other users.
    try makeDirectory(path, mode: 0o711)
    let pipe = try makePipe()
    let null = try FileDescriptor.open("/dev/null", .writeOnly)
    // In its own session, so that a signal to the whole run does not end it.
    shell = ShellBox(
      try ChildProcess(
        "setsid", ["sh", "-c", Self.removing, "sh", path], input: pipe.read.rawValue,
        output: null.rawValue, errors: null.rawValue))
    lifeline = pipe.takeWrite()
  }

  /// Returns an unused path in it.
  func newPath() -> String {
    "\(path)/\(Self.count.add(1, ordering: .relaxed).oldValue)"
  }
}
