import AppGroup
import PeerConnectivity
import SystemCalls
import Terminals

/// The demonstration: real processes of this program on a temporary container, one of them
/// suspended and one killed in the middle of a change.
final class Demo {
  /// Bounds every wait, so that a fault shows as a failed check and not as a terminal that hangs.
  private static let patience: Duration = .seconds(5)
  private static let name = "tickets"
  /// Reads how many are sold and prints one more; the first run does to its `wormhole` what SIGNAL
  /// says, in the middle of the change.
  private static let sell = """
    read sold
    if [ -n "$SIGNAL" ] && [ "$WORMHOLE_ATTEMPT" = 1 ]; then kill -"$SIGNAL" "$PPID"; fi
    echo $((sold + 1))
    """

  private static let peer = "watch"
  /// Answers a number with twice as much.
  private static let double = "read n; echo $((n * 2))"

  private struct Check {
    let claim: String
    let holds: Bool
    let duration: Duration?
  }

  private let stage: Stage
  private let environment: CommandEnvironment
  private let program: String
  private let directory: String
  private let listener: LineProcess
  private var started: [LineProcess]
  private var checks: [Check] = []
  private var heard: [String] = []

  init(_ environment: CommandEnvironment, directory: String) throws {
    self.environment = environment
    stage = Stage(
      hasColour: Colour.isWanted(
        isTerminal: environment.isTerminal, variable: environment.variable)
    ) { try environment.print(line: $0) }
    program = try Program.executablePath()
    self.directory = directory
    listener = try LineProcess(
      program, ["--container", directory, "listen", Self.name], environment: Self.surroundings([]))
    started = [listener]
  }

  /// - Returns: whether every step held.
  func run() throws -> Bool {
    defer { endAll() }
    try stage.show("wormhole demo: processes that share a directory, and nothing else")
    try message()
    let suspended = try suspension()
    try continuation(of: suspended)
    try kill()
    try sleep()
    try end()
    return checks.allSatisfy(\.holds)
  }

  private func endAll() {
    for process in started {
      do {
        try process.end()
      } catch {
        environment.tell("cannot end process \(process.processID): \(error)")
      }
    }
  }

  // MARK: Steps

  private func message() throws {
    try stage.title("1. A message goes from one process to another")
    try stage.act("listener", "$ wormhole listen tickets")
    guard try listener.line(until: deadline) == "listening" else {
      throw LineProcess.Failure(description: "the listener did not begin")
    }
    let (heard, duration) = try timed {
      try stage.act("sender", "$ wormhole send tickets 0")
      let sender = try start("send", Self.name, "0")
      defer { finish(sender) }
      return try hear()
    }
    try stage.act("listener", heard, took: duration)
    try stage.explain(
      "There is no server and no socket: a file in the directory was replaced in one step, and "
        + "the kernel told the listener. The time is that from starting the sender.")
    check("a message reaches another process without a server", heard == "0", duration)
  }

  private func suspension() throws -> LineProcess {
    try stage.title("2. A process is suspended in the middle of a change")
    try stage.act("A", "$ wormhole update tickets -- sell     (reads 0, would write 1)")
    let suspended = try startSelling(signal: "STOP")
    try suspended.waitUntilStopped(until: deadline)
    try stage.act("A", "is suspended by SIGSTOP, and has the lease of the message")

    try stage.act("reader", "$ wormhole read tickets")
    let (read, readDuration) = try timed { try output(of: start("read", Self.name)) }
    try stage.act("reader", read, took: readDuration)
    try stage.explain("Reading takes no lock: the last value is always there, whole.")
    check("a reader never waits, not even for a suspended writer", read == "0", readDuration)

    let (heard, duration) = try sellOne("B")
    try stage.explain(
      "B saw in /proc that A is stopped, gave it a grace of 50 ms and took its lease away. "
        + "Behind a lock such as flock(2), B would have waited for ever.")
    check("a suspended process blocks nobody", heard == "1", duration)
    return suspended
  }

  private func continuation(of suspended: LineProcess) throws {
    try stage.title("3. The suspended process goes on")
    try stage.act("A", "is continued by SIGCONT, with a change that is out of date")
    let (heard, duration) = try timed {
      try suspended.send(.continue)
      return try hear()
    }
    try stage.act("listener", heard, took: duration)
    try stage.explain(
      "A could not publish: what it had prepared went away with its lease. So it ran its command "
        + "again, on the latest value. Neither A's ticket nor B's is lost.")
    let isDone = try suspended.wait(until: deadline) == .exited(0)
    check(
      "when it goes on, no change is lost: neither its own nor B's", heard == "2" && isDone,
      duration)
  }

  private func kill() throws {
    try stage.title("4. A process is killed in the middle of a change")
    try stage.act("C", "$ wormhole update tickets -- sell     (reads 2, would write 3)")
    let termination = try startSelling(signal: "KILL").wait(until: deadline)
    try stage.act("C", "is killed by SIGKILL, and had the lease of the message")
    let (heard, duration) = try sellOne("B")
    try stage.explain(
      "The lease of a dead process is free at once, and nothing of its change was visible: "
        + "three tickets are sold, two by B and one by A.")
    check(
      "a killed process blocks nobody, and leaves nothing half done",
      termination == .killed(signal: Signal.kill.rawValue) && heard == "3", duration)
  }

  private func sleep() throws {
    try stage.title("5. A process is needed that does not run")
    try stage.act("watch", "$ wormhole peer launch set watch -- watchd     (doubles numbers)")
    finish(
      try start(
        "peer", "launch", "set", Self.peer,
        tail: [
          "--", program, "peer", "serve", Self.peer, "--count", "1", "--", "sh", "-c", Self.double,
        ]))
    try stage.act("phone", "$ wormhole peer send watch '\"two seats\"'")
    _ = try output(of: start("peer", "send", Self.peer, "\"two seats\""))
    let (reply, duration) = try timed {
      try stage.act("phone", "$ wormhole peer request watch 21")
      return try output(of: start("peer", "request", Self.peer, "21"))
    }
    try stage.act("phone", reply, took: duration)
    try stage.explain(
      "Nobody answered under that name, so the request started the program that is registered "
        + "for it: once, however many ask at the same moment.")
    check("a process that does not run is started to answer", reply == "42", duration)

    try stage.act("watch", "$ wormhole peer receive watch")
    let receiver = try start("peer", "receive", Self.peer, "--count", "1")
    _ = try receiver.line(until: deadline)
    let message = try output(of: receiver)
    try stage.act("watch", message)
    check("a message waits for who does not run", message == "\"two seats\"", nil)
  }

  private func end() throws {
    try stage.title("What held")
    let isTidy = try waitUntilTidy()
    check(
      "the listener heard every value, none twice, none late", heard == ["0", "1", "2", "3"], nil)
    check("nothing is left behind in the directory", isTidy, nil)
    for check in checks { try stage.check(check.claim, check.holds, took: check.duration) }
  }

  /// The process that was started needs a moment to leave.
  private func waitUntilTidy() throws -> Bool {
    let container = try SharedContainer(path: directory)
    let end = deadline
    while true {
      // What a process leaves that ends in the middle of noting something is swept, as doctor does.
      _ = try container.sweep()
      let report = try container.report()
      guard !report.isTidy else { return true }
      guard .now < end else {
        for leftover in report.leftovers { try stage.show("   left: \(leftover.path)") }
        return false
      }
      pauseThread(.milliseconds(1))
    }
  }

  // MARK: Their parts

  private var deadline: ContinuousClock.Instant { .now + Self.patience }

  private func start(
    _ arguments: String..., tail: [String] = [], variables: [String] = []
  ) throws -> LineProcess {
    let process = try LineProcess(
      program, ["--container", directory] + arguments + tail,
      environment: Self.surroundings(variables))
    started.append(process)
    return process
  }

  // What the user has set is about another container.
  private static func surroundings(_ variables: [String]) -> [String] {
    Program.environment(with: variables).filter { !$0.hasPrefix("WORMHOLE_") }
  }

  private func startSelling(signal: String = "") throws -> LineProcess {
    try start(
      "update", Self.name, tail: ["--", "sh", "-c", Self.sell], variables: ["SIGNAL=\(signal)"])
  }

  private func sellOne(_ actor: String) throws -> (heard: String, duration: Duration) {
    try stage.act(actor, "$ wormhole update tickets -- sell")
    let (heard, duration) = try timed {
      let seller = try startSelling()
      defer { finish(seller) }
      return try hear()
    }
    try stage.act("listener", heard, took: duration)
    return (heard, duration)
  }

  private func hear() throws -> String {
    let line = try listener.line(until: deadline)
    heard.append(line)
    return line
  }

  private func output(of process: LineProcess) throws -> String {
    defer { finish(process) }
    return try process.line(until: deadline)
  }

  private func finish(_ process: LineProcess) {
    do {
      let termination = try process.wait(until: deadline)
      if termination != .exited(0) {
        environment.tell("process \(process.processID) ended so: \(termination)")
      }
    } catch {
      environment.tell(error)
    }
  }

  private func timed<Result>(_ body: () throws -> Result) rethrows -> (Result, Duration) {
    let start = ContinuousClock.now
    let result = try body()
    return (result, ContinuousClock.now - start)
  }

  private func check(_ claim: String, _ holds: Bool, _ duration: Duration?) {
    checks.append(Check(claim: claim, holds: holds, duration: duration))
  }
}

extension ContainerReport {
  /// Whether nobody holds anything and nothing is left over.
  fileprivate var isTidy: Bool {
    leases.isEmpty && leftovers.isEmpty && foreignEntries.isEmpty && failures.isEmpty
  }
}
