import Dispatch
import Synchronization
import Wormhole
import WormholeEtcd
import WormholePeers
import WormholeSystem
import WormholeWorkshop

/// A worker's work besides values and notifications, each kind on its own thread.
final class Companions {
  /// One round of a client's job. A replacement while the process was stopped is not a failure; any other
  /// error is.
  typealias Round = @Sendable (inout SeededGenerator) throws -> Void

  private let arguments: WorkerArguments
  private var clients: [(kind: Kind, recorder: Recorder, round: Round)] = []
  private let running = DispatchGroup()
  private var requests: RequestClient?
  private var watch: PresenceWatch?
  private var changes: ChangeWatch?
  private var session: PeerSession?

  init(_ container: SharedContainer, _ arguments: WorkerArguments) throws {
    self.arguments = arguments
    let slot = arguments.slot
    try add(.presence) { _ in
      watch = try PresenceWatch(container)
      return nil
    }
    try add(.watches) { recorder in
      changes = try arguments.directory.etcd.map { ChangeWatch(try EtcdLocation($0), recorder) }
      return nil
    }
    try add(.queues) {
      DeliveryClient(try QueueDeliveries(container, slot: slot), $0, slot: slot).round
    }
    try add(.logs) {
      DeliveryClient(try LogDeliveries(container, slot: slot), $0, slot: slot).round
    }
    guard !arguments.options.kinds.isDisjoint(with: [.requests, .files]) else { return }
    let session = try PeerSession(RequestClient.name(slot: slot), in: container)
    self.session = session
    try add(.requests) { recorder in
      let requests = RequestClient(session, recorder, processes: arguments.options.processes)
      self.requests = requests
      return requests.round
    }
    try add(.files) {
      let files = FileDeliveries(
        session, arguments.directory, processes: arguments.options.processes)
      return DeliveryClient(files, $0, slot: slot).round
    }
  }

  /// Makes what a kind of work needs, if it was chosen; also its rounds, if it has any.
  private func add(_ kind: Kind, _ make: (Recorder) throws -> Round?) throws {
    guard arguments.options.kinds.contains(kind) else { return }
    let recorder = try Recorder(arguments.directory, life: arguments.life, kind)
    let round = try recorder.insisting(until: arguments.end) { try make(recorder) }
    if let round { clients.append((kind, recorder, round)) }
  }

  func begin() throws {
    try changes?.begin()
    for (kind, recorder, round) in clients {
      Blocking.queue().async(group: running) { [arguments] in
        Self.work(kind, recorder, arguments, round)
      }
    }
  }

  /// Repeats a client's job until the run ends.
  private static func work(
    _ kind: Kind, _ recorder: Recorder, _ arguments: WorkerArguments, _ round: Round
  ) {
    var random = SeededGenerator(
      seed: mix(arguments.options.seed &+ UInt64(kind.number)) ^ UInt64(arguments.life))
    while bootTimeNanoseconds() < arguments.end {
      var disturbance = Disturbance()
      if random.chance(3) {
        let point = Interruption.Point.call(Int.random(in: 0..<80, using: &random))
        disturbance.interruption = Interruption(point: point, isFatal: random.chance(10))
      }
      do {
        try disturbance.during { try round(&random) }
      } catch {
        recorder.noteOrEnd(recorder.entry(error, in: "\(kind)"))
      }
      pauseThread(random.milliseconds(0...4))
    }
  }

  /// Waits for the end; blocks the calling thread.
  func waitForEnd() throws {
    running.wait()
    requests?.settle()
    settleTransfers()
    for client in clients { try client.recorder.note(.rested) }
    let now = bootTimeNanoseconds()
    if now < arguments.end { pauseThread(.nanoseconds(Int64(arguments.end - now))) }
  }

  /// Waits for transfers in the background: a restore removes files stored after its snapshot.
  private func settleTransfers() {
    guard arguments.directory.etcd != nil, arguments.options.kinds.contains(.files), let session
    else {
      return
    }
    // On a busy machine each takes seconds.
    let deadline = ContinuousClock.now + .seconds(40)
    // Without the list it waits for nothing; a file that the restore removes then fails its check.
    for transfer in (try? session.fileTransfers()) ?? [] {
      // A failed transfer is also an answer; the check of files looks for it on the other side.
      _ = try? transfer.waitUntilStored(until: deadline)
    }
  }

  /// Returns the expected reports that have not arrived yet.
  func behind(_ last: [String: HistoryValue]) -> [String] {
    var behind = changes?.behind() ?? []
    if let watch, let sum = last[PresenceWatch.key], !watch.hasSeen(sum) {
      behind.append("it never received exactly the present processes")
    }
    return behind
  }
}

/// A worker's own presence, and its reports of the others'.
final class PresenceWatch: Sendable {
  static let name = "torture/here"
  /// The key among the last values that workers receive.
  static let key = "presence"

  private let registration: PresenceRegistration
  private let sums = Mutex<Set<UInt64>>([])
  private let observation = Mutex<ObservationToken?>(nil)

  init(_ container: SharedContainer) throws {
    let presence = container.presence(Self.name)
    registration = try presence.enter()
    let token = try presence.observe(
      startsWithCurrent: true, on: DispatchQueue(label: "torture.presence")
    ) { [weak self] members in
      _ = self?.sums.withLock { $0.insert(Self.sum(members.map(\.processID))) }
    }
    observation.withLock { $0 = token }
  }

  /// Returns the present processes as one number that does not depend on their order.
  static func sum(_ processes: [Int32]) -> UInt64 {
    processes.reduce(0) { $0 &+ mix(UInt64(UInt32(bitPattern: $1))) }
  }

  /// Returns whether exactly these processes were reported. They are present until all workers are
  /// to end.
  func hasSeen(_ sum: UInt64) -> Bool { sums.withLock { $0.contains(sum) } }
}
