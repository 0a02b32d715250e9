import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

/// The same directory twice: directly, and through a FUSE file system, which counts as a network
/// file system because inotify does not report other processes' changes there.
struct Mirror {
  private let mounts: MountNamespace

  /// - Parameter isCached: Whether the kernel caches answers for a second, even while the file
  ///   system hangs.
  init(isCached: Bool = true) throws {
    mounts = try MountNamespace()
    // Where the program is missing, the error says so at once.
    try mounts.run("command -v bindfs")
    let options = isCached ? "" : "-o attr_timeout=0 -o entry_timeout=0"
    try mounts.run(
      "mkdir -m 700 real seen && { bindfs -f \(options) real seen >served 2>&1 & echo $! >server; }"
    )
    try eventually("it is mounted") {
      try mounts.run("mountpoint -q seen; echo $?").hasPrefix("0")
    }
  }

  /// From now on the file system answers nothing.
  func hang() throws { try mounts.run("kill -STOP $(cat server)") }

  func goOn() throws { try mounts.run("kill -CONT $(cat server)") }

  /// A directory of the test that is not on the file system.
  var outside: String { mounts.outside }
  var realPath: String { outside + "/real" }
  var seenPath: String { mounts.inside + "/seen" }

  static let isPossible: Bool = {
    do {
      _ = try Mirror()
      return true
    } catch {
      print("skipped: no FUSE file system here: \(error)")
      return false
    }
  }()
}

@Suite("On a network file system", .blocking, .enabled(if: Mirror.isPossible))
struct NetworkTests {
  @Test("observers get changes from elsewhere by polling, and report that")
  func polling() throws {
    let mirror = try Mirror()
    let elsewhere = try SharedContainer(path: mirror.realPath).value("seats")
    let here = try SharedContainer(path: mirror.seenPath).value("seats")
    try elsewhere.replace(with: 1)
    let heard = Mutex<[PropertyListValue?]>([])
    let queue = DispatchQueue(label: "network")
    let observation = try here.observe(on: queue) { snapshot in
      do {
        let value = try snapshot.propertyList()
        heard.withLock { $0.append(value) }
      } catch {
        Issue.record(error)
      }
    }
    guard case .polling(let reason) = observation.detection else {
      Issue.record("not polling")
      return
    }
    #expect(reason.contains("network file system"))
    for number in 2...3 {
      try elsewhere.replace(with: .integer(Int64(number)))
      try eventually("change \(number) is delivered") {
        heard.withLock { $0.last == .some(.integer(Int64(number))) }
      }
    }
    try elsewhere.remove()
    try eventually("the removal is delivered") { heard.withLock { $0.last == .some(nil) } }
  }

  @Test("values are changed and read, and no change is lost")
  func changes() throws {
    let mirror = try Mirror()
    let container = try SharedContainer(path: mirror.seenPath)
    let seats = container.value("seats")
    try seats.replace(with: 1)
    try seats.replace(with: 2, durability: .durable)
    #expect(try seats.remove() && seats.read() == nil)
    let participants = try (0..<2).map { _ in try Participant(mirror.seenPath) }
    for _ in 0..<20 { for participant in participants { try participant.tell("add seats 1") } }
    for _ in 0..<20 {
      for participant in participants { #expect(try participant.answer() == "done") }
    }
    #expect(try seats.read() == 40)
    #expect(try SharedContainer(path: mirror.realPath).value("seats").read() == 40)
  }

  // The client renames a removed open file, so the lease of a stopped holder cannot be removed. The
  // removal used to be tried a thousand times, and to end as "directory not empty".
  @Test("while a holder is stopped others time out with the reason; later no change is lost")
  func stopped() throws {
    let mirror = try Mirror()
    let seats = try SharedContainer(path: mirror.seenPath).value("seats")
    let holder = try Participant(mirror.seenPath)
    #expect(try holder.ask("hold seats 10") == "holding")
    try holder.send(.stop)
    try holder.waitUntilStopped()
    for durability in [Durability.standard, .durable] {
      let error = try #require(throws: WormholeError.self) {
        try seats.replace(with: 1, durability: durability, until: .now + .milliseconds(300))
      }
      #expect(error.code == .timedOut && "\(error)".contains("network file system"), "\(error)")
    }
    try holder.send(.continue)
    #expect(try holder.ask("go on") == "holding")
    #expect(try holder.ask("go on") == "done")
    try seats.update { $0 = .integer(($0?.int64Value ?? 0) + 1) }
    #expect(try seats.read() == 11)
  }
}
