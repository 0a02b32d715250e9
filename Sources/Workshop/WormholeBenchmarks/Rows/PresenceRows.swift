import Dispatch
import Wormhole
import WormholeSystem
import WormholeToolkit
import WormholeWorkshop

/// Presences and notifications: above all the time from a SIGKILL to the observer's call. The floor
/// is the kernel's report: an inotify event for the closed file, and its lock's release.
enum PresenceRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let presence = try bench.container("presence").presence("here")
    let arrivals = Heard<Int>()
    let observation = try presence.observe(
      startsWithCurrent: true, on: DispatchQueue(label: "presence")
    ) { arrivals.note($0.count) }
    let directory = try bench.directory("presence-raw")
    let count = bench.scaled(20)
    let notice = try bench.compare(
      "death to notice / inotify + flock", rounds: bench.rounds,
      ours: { try median(of: count) { try death(bench.path + "/presence", arrivals) } },
      floor: { try median(of: count) { try rawDeath(directory) } })
    observation.cancel()
    return [notice, try look(bench)]
  }

  private static func death(_ directory: String, _ arrivals: Heard<Int>) throws -> Double {
    let victim = try Worker("present", [directory])
    try arrivals.wait { $0 == 1 }
    let begin = ContinuousClock.now
    try victim.process.send(.kill)
    let end = try arrivals.wait { $0 == 0 }
    try victim.process.end()
    return (end - begin).nanoseconds
  }

  private static func rawDeath(_ directory: String) throws -> Double {
    let events = try FileDescriptor.eventQueue()
    _ = try events.addWatch(directory, [.closedAfterWriting])
    let victim = try Worker("present-raw", [directory])
    let file = try FileDescriptor.open(directory + "/locked", .readOnly)
    let time = try nanosecondsPerRun {
      try victim.process.send(.kill)
      _ = try waitReadable([events.rawValue], until: .now + .seconds(10))
      while try !file.tryLock(.shared) {}
    }
    try victim.process.end()
    return time
  }

  /// Measures a look at an empty presence directory, which every coordinated access to a file
  /// makes.
  private static func look(_ bench: Bench) throws -> Row {
    let presence = try bench.container("nobody").presence("here")
    try presence.enter().close()
    let path = presence.path
    return try bench.compare(
      "look, no process present / open + getdents", rounds: bench.shortRounds, runs: 50,
      ours: { _ = try presence.members() },
      floor: {
        let open = try FileDescriptor.open(path, [.readOnly, .directory])
        while try open.nextEntries({ _ in }) {}
      })
  }

  /// Measures posting a notification, which takes no lock, against one rename.
  static func measureNotification(_ bench: Bench) throws -> [Row] {
    let notification = try bench.container("notify").notification("done")
    let directory = try FileDescriptor.open(
      try bench.directory("notify-raw"), [.readOnly, .directory])
    try writeNew([], "bell-0", in: directory)
    var number = 0
    return [
      try bench.compare(
        "post a notification / rename", rounds: bench.shortRounds, runs: 30,
        expected: .ratioAtMost(1.15),
        ours: { try notification.post() },
        floor: {
          number += 1
          try rename(
            "bell-\(number - 1)", at: directory.rawValue, to: "bell-\(number)",
            at: directory.rawValue)
        })
    ]
  }

  static func present(_ directory: String) throws {
    let registration = try SharedContainer(path: directory).presence("here").enter()
    try Worker.serve()
    registration.close()
  }

  static func presentRaw(_ directory: String) throws {
    let file = try FileDescriptor.open(directory + "/locked", [.writeOnly, .create])
    guard try file.tryLock(.exclusive) else {
      throw Failure(description: "the last process still has the lock")
    }
    try Worker.serve()
    try file.close()
  }
}
