import Dispatch
import Synchronization
import Wormhole
import WormholeSystem
import WormholeWorkshop

/// The time from a SIGKILL to the observer's call. The floor is the kernel's report: the close of
/// the dead process's file as an inotify event, and the release of its lock.
enum PresenceRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let presence = try bench.container("presence").presence("here")
    let arrivals = Arrivals()
    let observation = try presence.observe(
      startsWithCurrent: true, on: DispatchQueue(label: "presence")
    ) { arrivals.add($0.count) }
    let directory = try bench.directory("presence-raw")
    let count = bench.scaled(20)
    let notice = try bench.compare(
      "death to notice / inotify + flock", rounds: bench.rounds,
      ours: { try median(of: count) { try death(bench.path + "/presence", arrivals) } },
      floor: { try median(of: count) { try rawDeath(directory) } })
    observation.cancel()
    return [notice, try look(bench)]
  }

  private static func death(_ directory: String, _ arrivals: Arrivals) throws -> Double {
    let victim = try Worker("present", [directory])
    _ = try arrivals.wait(for: 1)
    let begin = ContinuousClock.now
    try victim.kill()
    let end = try arrivals.wait(for: 0)
    try victim.reap()
    return (end - begin).nanoseconds
  }

  private static func rawDeath(_ directory: String) throws -> Double {
    let events = try FileDescriptor.eventQueue()
    _ = try events.addWatch(directory, [.closedAfterWriting])
    let victim = try Worker("present-raw", [directory])
    let file = try FileDescriptor.open(directory + "/locked", .readOnly)
    let begin = ContinuousClock.now
    try victim.kill()
    _ = try waitReadable([events.rawValue], until: begin + .seconds(10))
    while try !file.tryLock(.shared) {}
    let end = ContinuousClock.now
    try victim.reap()
    return (end - begin).nanoseconds
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

  static func present(_ directory: String) throws {
    let registration = try SharedContainer(path: directory).presence("here").enter()
    try Worker.serve { _ in "" }
    registration.close()
  }

  static func presentRaw(_ directory: String) throws {
    let file = try FileDescriptor.open(directory + "/locked", [.writeOnly, .create])
    guard try file.tryLock(.exclusive) else {
      throw Failure(description: "the last process still has the lock")
    }
    try Worker.serve { _ in "" }
    try file.close()
  }

  /// The number of present processes at the last call, and the time of the call.
  private final class Arrivals: Sendable {
    private let last = Mutex<(count: Int, at: ContinuousClock.Instant)>((-1, .now))
    private let semaphore = DispatchSemaphore(value: 0)

    func add(_ count: Int) {
      last.withLock { $0 = (count, .now) }
      semaphore.signal()
    }

    func wait(for count: Int) throws -> ContinuousClock.Instant {
      while true {
        let (now, at) = last.withLock { $0 }
        if now == count { return at }
        guard semaphore.wait(timeout: .now() + .seconds(10)) == .success else {
          throw Failure(description: "\(count) present processes were not reported")
        }
      }
    }
  }
}
