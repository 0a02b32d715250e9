import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("Starting a peer", .blocking)
struct LaunchTests {
  let scene: LaunchScene

  init() throws { scene = try LaunchScene() }

  private func refusal(
    _ code: WormholeError.Code = .notLaunched, within seconds: Double = 20
  ) throws -> WormholeError {
    let error = try #require(throws: WormholeError.self) { try scene.launch(within: seconds) }
    #expect(error.code == code, "\(error)")
    return error
  }

  @Test("starts one process if twenty others ask at the same moment, and all find it active")
  func exactlyOnce() throws {
    try scene.register("active")
    let askers = try (0..<20).map { _ in try scene.participant() }
    for asker in askers { _ = try asker.ask("read x") }
    for (index, asker) in askers.enumerated() {
      try asker.tell(index % 4 == 3 ? "begin p request" : "launch p")
    }
    for asker in askers { #expect(try asker.answer() == "true") }
    try eventually("it is active") { try scene.active().count == 1 }
    #expect(try scene.started() == 1)
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == nil)
  }

  @Test("starts one process when twenty threads ask at the same moment")
  func threads() throws {
    try scene.register("patient")
    let scene = scene
    // Separate threads, because the other tests need the shared ones.
    let answers = Mutex<[Result<Bool, any Error>]>([])
    for _ in 0..<20 {
      try startThread(name: "launch") {
        let answer = Result { try scene.launch() }
        answers.withLock { $0.append(answer) }
      }
    }
    try eventually("it is started") { try scene.started() == 1 }
    try scene.container.value("go").replace(with: true)
    try eventually("all have an answer") { answers.withLock { $0.count == 20 } }
    for answer in answers.withLock({ $0 }) { #expect(try answer.get()) }
    #expect(try scene.started() == 1)
  }

  @Test("is not needed while it is active, and is possible again after it was killed")
  func again() throws {
    try scene.register("active")
    for round in 1...3 {
      #expect(try scene.launch())
      #expect(try scene.launch())
      #expect(try scene.started() == round)
      try scene.killActive()
    }
  }

  @Test("starts another if the started one is not active any more, but still runs")
  func passing() throws {
    try scene.register("passing")
    #expect(try scene.launch())
    try eventually("it is not active any more") { try scene.active().isEmpty }
    #expect(try scene.launch())
    #expect(try scene.started() == 2)
  }

  @Test("does nothing for an occasion that is not registered, and nothing without registration")
  func policies() throws {
    #expect(try !scene.launch())
    try scene.register("active", for: [])
    for occasion in [PeerLaunch.Occasions.request, .queuedWork, .urgentWork] {
      #expect(try !scene.launch(for: occasion))
      #expect(try !Launcher.isLaunchable("p", for: occasion, in: scene.container))
    }
    try scene.register("active", for: .urgentWork)
    #expect(try !scene.launch(for: .request))
    #expect(try !scene.launch(for: .queuedWork))
    #expect(try Launcher.isLaunchable("p", for: .urgentWork, in: scene.container))
    #expect(try scene.launch(for: .urgentWork))
    try scene.killActive()
    // Urgent work is queued work, too.
    try scene.register("active", for: .queuedWork)
    #expect(try !Launcher.isLaunchable("p", for: .request, in: scene.container))
    #expect(try scene.launch(for: .urgentWork))
    #expect(try scene.started() == 2)
    try PeerLaunch.Registry(in: scene.container).remove("p")
    #expect(try PeerLaunch.Registry(in: scene.container).launch(of: "p") == nil)
    try scene.killActive()
    #expect(try !scene.launch(for: .urgentWork))
  }

  @Test("reports why a program cannot be run, and does not count it")
  func unusableProgram() throws {
    let path = scene.directory.path
    try scene.register(program: path + "/none", budget: 5)
    #expect(try refusal().reason.contains("none cannot be found"))
    #expect(try !Launcher.isLaunchable("p", for: .request, in: scene.container))
    try scene.register(program: path, budget: 5)
    #expect(try refusal().reason.contains("is not a file"))
    try FileDescriptor.open(path + "/text", [.writeOnly, .create], mode: 0o600).close()
    try scene.register(program: path + "/text", budget: 5)
    #expect(try refusal().reason.contains("is not executable (mode 600)"))
    #expect(try PeerLaunch.Registry(in: scene.container).remainingLaunches(of: "p") == 5)
    // No shell runs a file that the kernel does not accept as a program.
    let file = try FileDescriptor.open(path + "/odd", [.writeOnly, .create], mode: 0o700)
    try file.writeAll(Array("exit 0\n".utf8))
    try file.close()
    try scene.register(program: path + "/odd", budget: 5)
    #expect(try refusal().reason.contains("cannot be run"))
  }

  @Test("reports that a program ended before it was active, with its status and output")
  func endsAtOnce() throws {
    try scene.register(
      program: "/bin/sh", ["-c", "echo so it begins; echo no library >&2; exit 3"])
    let error = try refusal()
    #expect(error.reason.contains("ended before it was active"), "\(error)")
    #expect(error.reason.contains("exited with status 3"), "\(error)")
    #expect(error.reason.contains("printed last: no library"), "\(error)")
    let output = try #require(try PeerLaunch.Registry(in: scene.container).output(of: "p"))
    #expect(error.remedy?.contains(output) == true)
    #expect(try ItemText.read(output) == "so it begins\nno library\n")
    // Each call tries again.
    try scene.register(program: "/bin/sh", ["-c", "kill -9 $$"])
    #expect(try refusal().reason.contains("was killed by signal 9"))
    let second = try #require(try PeerLaunch.Registry(in: scene.container).output(of: "p"))
    #expect(second != output)
    #expect(try ItemText.read(output) == nil)
  }

  @Test("ends at its deadline with the program that does not become active, and starts no other")
  func neverActive() throws {
    try scene.register("idle")
    // On a busy machine the first deadlines may pass before there is a process.
    var error = try refusal(.timedOut, within: 0.3)
    try eventually("there is a process") {
      if error.holder == nil { error = try refusal(.timedOut, within: 0.3) }
      return error.holder != nil
    }
    let process = try #require(error.holder?.processID)
    #expect(ProcessStatus.of(process) != nil)
    try eventually("it counts itself") { try scene.started() == 1 }
    #expect(try refusal(.timedOut, within: 0.3).holder?.processID == process)
    #expect(try scene.started() == 1)
    // Already past: only if it is active now.
    #expect(try refusal(.timedOut, within: -1).holder?.processID == process)
  }

  @Test("gives the program its arguments and environment, a session, and no input")
  func surroundings() throws {
    let script = """
      printf '%s|' "$@"; printf '%s|%s|' "$LAUNCH_TEST" "$PWD"; cat; \
      cut -d' ' -f1,6 /proc/$$/stat; \
      for fd in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$fd ] && printf '%s ' $fd; done
      """
    try PeerLaunch.Registry(in: scene.container).set(
      PeerLaunch(
        program: "/bin/sh", arguments: ["-c", script, "sh", "a b", "", "$HOME"],
        environment: ["LAUNCH_TEST": "x=y"]), for: "p")
    _ = try refusal()
    let output = try #require(try PeerLaunch.Registry(in: scene.container).output(of: "p"))
    let lines = try #require(try ItemText.read(output)).split(separator: "\n")
    #expect(lines[0].hasPrefix("a b||$HOME|x=y|/|"), "\(lines)")
    let numbers = lines[0].split(separator: "|").last?.split(separator: " ") ?? []
    #expect(numbers.count == 2 && numbers[0] == numbers[1], "leader of a session: \(lines)")
    #expect(lines[1] == "0 1 2 ", "\(lines)")
  }

  @Test("leaves no zombie, with or without a waiter")
  func noZombies() throws {
    try scene.register(program: "/bin/false", for: [.request, .queuedWork])
    _ = try refusal()
    #expect(try Launcher.launch("p", for: .queuedWork, in: scene.container, until: nil))
    let start = try #require(try LaunchBook("p", scene.container).read().start)
    try #require(start.isProgram)
    try eventually("it is reaped") {
      ProcessStatus.of(start.process.processID)?.startTicks != start.process.startTicks
    }
  }

  @Test("continues if its launcher ends right after")
  func beginAndEnd() throws {
    try scene.register("patient", for: .queuedWork)
    let asker = try scene.participant()
    #expect(try asker.ask("begin p") == "true")
    try asker.end()
    try scene.container.value("go").replace(with: true)
    try eventually("it is active") { try scene.active().count == 1 }
    #expect(try scene.started() == 1)
  }

  @Test("starts another instead of one that is stopped before it is active")
  func stoppedProgram() throws {
    try scene.register("patient")
    #expect(try Launcher.launch("p", for: .request, in: scene.container, until: nil))
    try eventually("it counts itself") { try scene.started() == 1 }
    let first = try #require(try LaunchBook("p", scene.container).read().start?.process)
    try Program.send(.stop, to: first.processID)
    defer {
      // It ends with its container.
      do { try Program.send(.continue, to: first.processID) } catch { Issue.record("\(error)") }
    }
    try scene.container.value("go").replace(with: true)
    #expect(try scene.launch())
    #expect(try scene.started() == 2)
    #expect(try scene.active() != [first.processID])
  }

  @Test("refuses impossible names and registrations")
  func unsuitable() throws {
    let unsuitable = [
      PeerLaunch(program: "sh"), PeerLaunch(program: ""), PeerLaunch(program: "/bin/s\0h"),
      PeerLaunch(program: "/bin/sh", arguments: ["a\0b"]),
      PeerLaunch(program: "/bin/sh", environment: ["": "x"]),
      PeerLaunch(program: "/bin/sh", environment: ["a=b": "x"]),
      PeerLaunch(program: "/bin/sh", budgetPerDay: -1),
    ]
    for launch in unsuitable {
      #expect(throws: WormholeError.self, "\(launch)") {
        try PeerLaunch.Registry(in: scene.container).set(launch, for: "p")
      }
    }
    #expect(throws: WormholeError.self) {
      try PeerLaunch.Registry(in: scene.container).set(PeerLaunch(program: "/bin/sh"), for: "")
    }
    let whole = PeerLaunch(
      program: "/bin/ä", arguments: ["", "b"], environment: ["A": "", "ü": "="],
      occasions: [.request, .urgentWork], budgetPerDay: 0)
    try PeerLaunch.Registry(in: scene.container).set(whole, for: "p/q")
    #expect(try PeerLaunch.Registry(in: scene.container).launch(of: "p/q") == whole)
  }
}
