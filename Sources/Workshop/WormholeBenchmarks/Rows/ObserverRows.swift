import Dispatch
import Wormhole
import WormholeSystem
import WormholeWorkshop

/// The cost of idle observers: wake-ups, memory, and the time to set them up.
enum ObserverRows {
  /// Names that are observed before the counting begins, so that one-time costs of the process do
  /// not count.
  static let warmUp = 100

  static func measureIdle(_ bench: Bench) throws -> [Row] {
    let worker = try Worker("observe", [try bench.directory("idle"), "\(bench.scaled(1_000))"])
    let seconds = bench.isQuick ? 1 : 5
    // Threads that only the setup needed end within this time.
    pauseThread(.seconds(seconds))
    let before = try worker.askNumbers("counters")
    pauseThread(.seconds(seconds))
    let after = try worker.askNumbers("counters")
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
    let costs = try worker.askNumbers("costs")
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
    let queue = DispatchQueue(label: "observers")
    func observe(_ name: String) throws -> ObservationToken {
      try container.value(name).observe(on: queue) { _ in }
    }
    var observations = try (0..<warmUp).map { try observe("warm-up-\($0)") }
    let before = try residentBytes()
    var index = 0
    let time = try nanosecondsPerRun(count) {
      observations.append(try observe("name-\(index)"))
      index += 1
    }
    let bytes = (try residentBytes() - before) / Double(count)
    try Worker.serve { words in
      if words.first == "costs" { return "\(bytes) \(time)" }
      return "\(ChangeMonitor.shared.statistics.wakeUps) \(try contextSwitches())"
    }
    withExtendedLifetime(observations) {}
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
    let file = try FileDescriptor.open(path, .readOnly)
    let bytes = try file.readToEnd(expectedBytes: 0, maximumBytes: 65_536)
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let fields = line.split { $0 == " " || $0 == "\t" }
      if fields.count > 1, fields[0] == key, let number = Double(fields[1]) { return number }
    }
    throw Failure(description: "\(path) has no \(key)")
  }
}
