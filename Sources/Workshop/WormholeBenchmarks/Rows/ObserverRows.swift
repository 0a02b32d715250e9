import Dispatch
import Wormhole
import WormholeSystem
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
