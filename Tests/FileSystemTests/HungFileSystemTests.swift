import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

/// Two containers in one process; the file system of one of them does not answer.
@Suite("While a file system does not answer", .blocking, .waiting, .enabled(if: Mirror.isPossible))
struct HungFileSystemTests {
  let mirror: Mirror
  let directory: TemporaryDirectory
  let healthy: SharedContainer

  init() throws {
    mirror = try Mirror(isCached: false)
    directory = try TemporaryDirectory()
    healthy = try SharedContainer(path: directory.path)
  }

  /// Hangs the file system while a body runs.
  private func whileHung(_ body: () throws -> Void) throws {
    try mirror.hang()
    do {
      try body()
    } catch {
      try mirror.goOn()
      throw error
    }
    try mirror.goOn()
  }

  /// Calls a body on its own thread, which may hang, and waits for its end.
  private func returns<Result: Sendable>(
    _ what: String, _ body: @escaping @Sendable () throws -> Result
  ) throws -> Result {
    let result = Mutex<Swift.Result<Result, any Error>?>(nil)
    try startThread(name: "healthy") {
      let ended = Swift.Result { try body() }
      result.withLock { $0 = ended }
    }
    try eventually(what) { result.withLock { $0 != nil } }
    let ended = try #require(result.withLock { $0 })
    return try ended.get()
  }

  // Each on its own queue, because a look at the hanging file system blocks its queue.
  private func observe(_ value: PlainValue, _ heard: Recorder) throws -> ObservationToken {
    try value.observe(on: DispatchQueue(label: "observer")) { snapshot in
      do {
        let value = try snapshot.propertyList()
        heard.last.withLock { $0 = value }
      } catch {
        Issue.record(error)
      }
    }
  }

  final class Recorder: Sendable {
    let last = Mutex<PropertyListValue?>(nil)
    func has(_ value: PropertyListValue) -> Bool { last.withLock { $0 == value } }
  }

  @Test("other containers in the process deliver, observe, and wait until their deadlines")
  func others() throws {
    let there = try SharedContainer(path: mirror.seenPath)
    let observedThere = try observe(there.value("seats"), Recorder())
    let old = Recorder()
    let observation = try observe(healthy.value("old"), old)
    let holder = try Participant(directory.path)
    #expect(try holder.ask("hold held 10") == "holding")
    try whileHung {
      let isBegun = Atomic(false)
      try startThread(name: "hung") {
        isBegun.store(true, ordering: .sequentiallyConsistent)
        do { _ = try there.value("other").observe(on: DispatchQueue(label: "hung")) { _ in } } catch
        {
          Issue.record(error)
        }
      }
      try eventually("it has begun") { isBegun.load(ordering: .sequentiallyConsistent) }
      let waited = try returns("a wait for a lease ends") { [healthy] in
        #expect(throws: WormholeError.self) {
          try healthy.value("held").replace(with: 1, until: .now + .milliseconds(100))
        }
      }
      #expect(waited?.code == .timedOut)
      let new = Recorder()
      let another = try returns("an observation begins") { [healthy, self] in
        try observe(healthy.value("new"), new)
      }
      for name in ["old", "new"] {
        try returns("\(name) is changed") { [healthy] in
          try healthy.value(name).replace(with: 2)
        }
      }
      try eventually("an old observation is called") { old.has(2) }
      try eventually("a new one is called") { new.has(2) }
      another.cancel()
      try returns("a watch there ends") { observedThere.cancel() }
    }
    observation.cancel()
    #expect(try holder.ask("go on") == "done")
  }

  @Test("complete looks continue for the others, and happen there when it answers")
  func checks() throws {
    let monitor = ChangeMonitor(checkInterval: .milliseconds(20))
    let (near, far) = (directory.path + "/near", mirror.seenPath + "/far")
    for path in [near, far] { try makeDirectory(path) }
    let signals = Mutex(0)
    let watches = [
      monitor.watch(
        path: near, parents: [directory.path], prepare: {},
        hear: { _ in signals.withLock { $0 += 1 } }),
      monitor.watch(path: far, parents: [mirror.seenPath], prepare: {}, hear: { _ in }),
    ]
    try whileHung {
      for round in 0..<3 {
        let before = monitor.statistics.wakeUps
        try eventually("the monitor goes on looking") {
          monitor.statistics.wakeUps > before + 5
        }
        let count = signals.withLock { $0 }
        try FileDescriptor.open("\(near)/\(round)", [.writeOnly, .create]).close()
        try eventually("a watch elsewhere is reported") { signals.withLock { $0 } > count }
      }
      try eventually("the look there waits") { monitor.state.withLock { $0.lanesAtWork } == 1 }
    }
    try eventually("it ends when the file system answers") {
      monitor.state.withLock { $0.lanesAtWork } == 0
    }
    withExtendedLifetime(watches) {}
  }

  /// Starts the command with its output and status as lines.
  private func begin(_ arguments: String) throws -> Participant {
    let program = try BuiltProgram.path("wormhole")
    return try Participant(
      program: "sh",
      ["-c", "\(program) --container '\(mirror.seenPath)' \(arguments) 2>&1; echo $?"])
  }

  @Test("the command reports it and ends, at its deadline or after ten seconds")
  func command() throws {
    let program = try BuiltProgram.path("wormhole")
    let file = mirror.seenPath + "/file"
    let holder = try Participant(
      program: "sh",
      [
        "-c",
        "\(program) lock '\(file)' --timeout 1 -- sh -c 'echo holding; read x; echo $x'; echo $?",
      ])
    #expect(try holder.answer() == "holding")
    try whileHung {
      let timed = try [
        begin("listen seats --timeout 1"), begin("peer request nobody 1 --timeout 1"),
        Participant(
          program: "sh", ["-c", "\(program) lock '\(file)' --timeout 1 -- true 2>&1; echo $?"]),
      ]
      let others = try [
        "read seats", "send seats 1", "update seats -- cat", "status", "doctor", "peer list",
      ].map { try begin($0) }
      for (command, status) in timed.map({ ($0, "124") }) + others.map({ ($0, "74") }) {
        let said = try command.answer()
        #expect(said.contains("does not answer") && said.contains(mirror.seenPath), "\(said)")
        #expect(try command.answer() == status)
      }
    }
    // A user's program relies on its held lease, so it was not cut off meanwhile.
    #expect(try holder.ask("done") == "done")
    #expect(try holder.answer() == "0")
  }
}
