import Dispatch
import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// The cost of idle observers: wake-ups, memory, and the time to set them up.
enum ObserverRows {
  static func measureIdle(_ bench: Bench) throws -> [Row] {
    let worker = try Worker("observe", [try bench.directory("idle"), "\(bench.scaled(1_000))"])
    let seconds = bench.isQuick ? 1 : 5
    // Threads that only the setup needed end within this time.
    pauseThread(.seconds(seconds))
    let before = try worker.ask("counters")
    pauseThread(.seconds(seconds))
    let after = try worker.ask("counters")
    let perSecond = zip(after, before).map { ($0 - $1) / Double(seconds) }
    return [
      Row(
        "wake-ups of the monitor, \(bench.scaled(1_000)) observers", .perSecond,
        ours: [perSecond[0]], expected: .oursAtMost(0)),
      Row(
        "context switches of all its threads", .perSecond, ours: [perSecond[1]],
        expected: .oursAtMost(0)),
    ]
  }

  static func measureMemory(_ bench: Bench) throws -> [Row] {
    let count = bench.scaled(10_000)
    let worker = try Worker("observe", [try bench.directory("memory"), "\(count)"])
    let costs = try worker.ask("costs")
    let raw = try rawSetUp(try bench.directory("memory-raw"), count)
    return [
      Row(
        "memory of an observed name", .bytes, ours: [costs[0]],
        notes: ["resident memory of a process with \(count) more of them"]),
      Row(
        "time to observe a new name / mkdir + watch + open", ours: [costs[1]], floor: [raw]),
    ]
  }

  /// The bare calls for observing one name: mkdir, inotify_add_watch, and a read attempt that finds
  /// nothing.
  private static func rawSetUp(_ directory: String, _ count: Int) throws -> Double {
    let events = try FileDescriptor.eventQueue()
    var index = 0
    return try nanosecondsPerRun(count) {
      let name = "\(directory)/\(index)"
      index += 1
      try makeDirectory(name)
      _ = try events.addWatch(name, [.movedTo, .onlyDirectory])
      _ = try ifPresent(FileDescriptor.open(name + "/value.plist", .readOnly))
    }
  }

  static func serve(_ directory: String, count: Int) throws {
    let container = try SharedContainer(path: directory)
    let warmUp = try observe("warm-up", warmUpCount, in: container)
    let observed = try observe("name", count, in: container)
    try Worker.serve { line in
      if line == "costs" { return "\(observed.bytes) \(observed.time)" }
      return "\(ChangeMonitor.shared.statistics.wakeUps) \(try contextSwitches())"
    }
    withExtendedLifetime((warmUp, observed)) {}
  }

  /// Names that are observed before the counting begins, so that one-time costs of the process do
  /// not count.
  static let warmUpCount = 100

  /// Observes new names; returns the memory and the time that each takes.
  static func observe(
    _ name: String, _ count: Int, in container: SharedContainer
  ) throws -> (tokens: [ObservationToken], bytes: Double, time: Double) {
    let queue = DispatchQueue(label: "observers")
    let before = try residentBytes()
    var tokens: [ObservationToken] = []
    let time = try nanosecondsPerRun(count) {
      let value = container.value("\(name)-\(tokens.count)")
      tokens.append(try value.observe(on: queue) { _ in })
    }
    return (tokens, (try residentBytes() - before) / Double(count), time)
  }

  static func residentBytes() throws -> Double {
    try number("VmRSS:", in: "/proc/self/status") * 1_024
  }

  /// Of all threads but the main one, which answers the commands.
  private static func contextSwitches() throws -> Double {
    let tasks = try FileDescriptor.open("/proc/self/task", [.readOnly, .directory]).entries()
    return try tasks.filter { $0.name.text != "\(Program.processID)" }.reduce(0) { sum, task in
      let path = "/proc/self/task/\(task.name.text)/status"
      return sum + (try number("voluntary_ctxt_switches:", in: path))
    }
  }

  private static func number(_ key: String, in path: String) throws -> Double {
    for line in try textOfFile(path).split(separator: "\n") {
      let fields = line.split { $0 == " " || $0 == "\t" }
      if fields.count > 1, fields[0] == key, let number = Double(fields[1]) { return number }
    }
    throw Failure(description: "\(path) has no \(key)")
  }
}

/// Costs that grow with the size of a value, the number of processes at work, and the number of
/// names. The floor of a row about many is our own code with few.
enum ScaleRows {
  /// The two numbers of processes that one row compares; few: as many as a machine may have cores.
  private static let processes = (few: 2, many: 64)

  static func measure(_ bench: Bench) throws -> [Row] {
    try [20, 2_048].flatMap { try sized($0, bench) } + [crowd(bench)]
  }

  /// Measures publishing and reading a large value, beside the bare calls with as many bytes. A
  /// value of more than a block is published once its content is written, and so is the floor's.
  private static func sized(_ kibibytes: Int, _ bench: Bench) throws -> [Row] {
    let bytes = kibibytes << 10
    let size = kibibytes < 1_024 ? "\(kibibytes) KiB" : "\(kibibytes >> 10) MiB"
    let (value, raw) = try bench.value("size-\(bytes)")
    let ours = PropertyListValue.data(Data(repeating: 0x78, count: bytes - 60))
    let theirs = [UInt8](repeating: 0x78, count: bytes)
    let results = try alternate(
      rounds: kibibytes < 1_024 ? bench.shortRounds : bench.rounds, runs: 4,
      [
        { try value.replace(with: ours) }, { try raw.publish(theirs, waits: true) },
        { _ = try value.snapshot().bytes() }, { _ = try raw.readAll() },
        { try raw.publish(theirs) },
      ])
    return [
      Row(
        "publish, \(size) / exchange + unlink", ours: results[0], floor: results[1],
        notes: ["both wait for the write; without, \(fixed(results[4].median / 1_000, 1)) µs"]),
      Row("read, \(size) / open + fstat + read", ours: results[2], floor: results[3]),
    ]
  }

  /// Measures processes that change their own values in one container at the same time: each
  /// change's share of the whole.
  private static func crowd(_ bench: Bench) throws -> Row {
    let place = try bench.directory("crowd")
    _ = try SharedContainer(path: place)
    let workers = try (0..<processes.many).map { number in
      try Worker("increment", [place, "count-\(number)"])
    }
    func round(_ count: Int) throws -> Double {
      try Worker.race(workers.prefix(count), bench.isQuick ? "100" : "300").time
    }
    let results = try alternate(
      rounds: bench.rounds, [{ try round(processes.many) }, { try round(processes.few) }])
    return Row(
      "update, \(processes.many) processes, each its own / \(processes.few) processes",
      ours: results[0], floor: results[1], expected: .ratioAtMost(1.2),
      notes: [
        "\(fixed(1e9 / results[0].median, 0))/s against \(fixed(1e9 / results[1].median, 0))/s"
      ])
  }

  /// Measures a publication when the container holds many names, and then when another process observes
  /// many.
  static func measureNames(_ bench: Bench) throws -> [Row] {
    let (present, count) = (bench.scaled(100_000), bench.scaled(10_000))
    let few = try bench.container("names-1")
    let many = try bench.container("names-many")
    let content = SharedCount.content(1)
    for index in 0..<present { try many.value("name-\(index)").replace(with: content) }
    func row(_ number: Int, _ what: String) throws -> Row {
      let (few, many) = (few.value("name-0"), many.value("name-0"))
      return try bench.compare(
        "publish, \(number) names \(what) / 1 \(what)", rounds: bench.shortRounds, runs: 4,
        expected: .ratioAtMost(1.2), ours: { try many.replace(with: content) },
        floor: { try few.replace(with: content) })
    }
    let alone = try row(present, "present")
    let one = try Worker("observe", [bench.path + "/names-1", "1"])
    let all = try Worker("observe", [bench.path + "/names-many", "\(count)"])
    let observed = try row(count, "observed")
    withExtendedLifetime((one, all)) {}
    return [alone, observed]
  }
}
