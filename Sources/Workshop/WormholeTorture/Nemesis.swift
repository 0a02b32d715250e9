import WormholeEtcd
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// The director of a run's etcd: kills, stops and starts its members, moves the leader, discards
/// the history, and disturbs the connections, at random. It leaves the processes to `Chaos`.
final class Nemesis {
  /// What it does, in the words of the report.
  enum Deed: String, CaseIterable {
    case killed = "members killed"
    case stopped = "members stopped"
    case majoritiesTaken = "majorities taken away"
    case leadersMoved = "leaders moved"
    case compactions
    case cuts = "all connections cut"
    case blocked = "connections blocked"
    case lossy = "times of lost answers"
    case answersLost = "  answers lost"
    case restored = "snapshots restored"
  }

  /// How long a silent process counts as alive.
  static let lifetime: Duration = .seconds(2)
  /// How long one of its own calls may take; until then nothing else is disturbed.
  private static let patience: Duration = .seconds(1)

  private let members: EtcdMembers
  private let proxies: [LossyProxy]
  private let client: EtcdClient
  private var random: SeededGenerator
  private var next = ContinuousClock.now
  private let isVerbose: Bool
  private(set) var counts: [Deed: Int] = [:]
  /// The ends of disturbances: of members, and of connections.
  private var mending: [Target: (at: ContinuousClock.Instant, how: () throws -> Void)] = [:]

  private enum Target: CaseIterable {
    case members
    case connections
  }

  init(_ options: TortureOptions, _ directory: RunDirectory) throws {
    var setting = EtcdNode.Setting(directory: directory.path)
    // The main thread starts the members.
    setting.endsWithThread = true
    members = try EtcdMembers(options.members ?? 1, setting)
    proxies = try members.nodes.map { try LossyProxy(to: $0.endpoint) }
    client = members.client()
    random = SeededGenerator(seed: ~options.seed)
    isVerbose = options.isVerbose
    _ = try members.leader()
  }

  /// Returns the place of the container for a process; every second process uses the proxies.
  func location(_ life: Int) -> String {
    let all = life % 2 == 0 ? members.nodes.map(\.endpoint) : proxies.map(\.endpoint)
    let hosts = all.indices.map { all[($0 + life / 2) % all.count].dropFirst("http://".count) }
    let seconds = Self.lifetime.components.seconds
    return "etcd://\(hosts.joined(separator: ","))/torture?ttl=\(seconds)"
  }

  /// Ends the disturbances that are due, and makes the next one.
  func attend(now: ContinuousClock.Instant) throws {
    for (target, due) in mending where now >= due.at { try mend(target) }
    try startFailed()
    guard now >= next else { return }
    next = now + random.milliseconds(100...1_500)
    let target = random.chance(60) ? Target.members : .connections
    guard mending[target] == nil else { return }
    switch target {
    case .members: try disturbMembers(now)
    case .connections: try disturbConnections(now)
    }
  }

  // Another process may have taken its port at that moment.
  private func startFailed() throws {
    for node in members.nodes where node.hasFailed {
      report("\(node.name) has ended by itself, and is started again")
      try node.start()
    }
  }

  private func mend(_ target: Target) throws {
    try mending.removeValue(forKey: target)?.how()
  }

  /// A moment, or longer than the lease of a process.
  private func pause() -> Duration {
    random.chance(25) ? random.milliseconds(2_500...4_500) : random.milliseconds(50...1_200)
  }

  // MARK: Members

  private func disturbMembers(_ now: ContinuousClock.Instant) throws {
    let count = members.nodes.count
    let victim = Int.random(in: 0..<count, using: &random)
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<25: try harm([victim], kills: true, until: now + pause())
    case 25..<45: try harm([victim], kills: false, until: now + pause())
    case 45..<60 where count > 1:
      did(.majoritiesTaken)
      let others = members.nodes.indices.filter { $0 != victim }
      try harm(others, kills: random.chance(50), until: now + pause())
    case 60..<80 where count > 1: moveLeader(to: victim)
    default: compact()
    }
  }

  private func harm(
    _ victims: [Int], kills: Bool, until end: ContinuousClock.Instant
  ) throws {
    let nodes = victims.map { members.nodes[$0] }
    for node in nodes { if kills { node.end() } else { try node.stop() } }
    did(kills ? .killed : .stopped, nodes.count, nodes.map(\.name).joined(separator: ", "))
    mending[.members] = (
      end, { for node in nodes { if kills { try node.start() } else { try node.goOn() } } }
    )
  }

  private func moveLeader(to member: Int) {
    do {
      try members.lead(member)
      did(.leadersMoved, 1, "to \(members.nodes[member].name)")
    } catch {
      // It is gone for the moment, or there is no leader.
      report("no leader could be moved: \(error)")
    }
  }

  /// Discards the history, up to now or up to a few changes ago.
  private func compact() {
    do {
      let node = random.pick(members.nodes)
      let now = try client.status(of: node.endpoint, until: .now + Self.patience).revision
      let revision = max(1, now - Int64.random(in: 0...20, using: &random))
      try node.ask("kv/compaction", #"{"revision":"\#(revision)"}"#, patience: Self.patience)
      did(.compactions, 1, "up to \(revision)")
    } catch {
      // It is gone for the moment, or has already discarded that part.
      report("no compaction: \(error)")
    }
  }

  // MARK: Connections

  private func disturbConnections(_ now: ContinuousClock.Instant) throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<40:
      did(.cuts)
      for proxy in proxies { proxy.cut() }
    case 40..<70:
      did(.blocked)
      for proxy in proxies { proxy.block() }
      mending[.connections] = (now + pause(), { [proxies] in for one in proxies { one.unblock() } })
    default:
      let share = Int.random(in: 2...20, using: &random)
      did(.lossy, 1, "one in \(share)")
      for proxy in proxies { proxy.lose(oneIn: share) }
      mending[.connections] = (
        now + random.milliseconds(500...3_000),
        { [proxies] in for one in proxies { one.lose(oneIn: 0) } }
      )
    }
  }

  // MARK: The end

  /// Ends all disturbances, and waits until the cluster answers.
  func heal() throws {
    for target in Target.allCases { try mend(target) }
    counts[.answersLost] = proxies.reduce(0) { $0 + $1.lost }
    try waitForAnswer()
  }

  private func waitForAnswer() throws {
    let deadline = ContinuousClock.now + .seconds(30)
    _ = try poll(until: deadline) {
      try startFailed()
      return members.leaderNow() != nil
    }
    _ = try client.read(.key([0]), until: deadline)
  }

  /// Keeps the current state, as a snapshot does.
  func save() throws { try restart { try $0.save() } }

  /// Restores the kept state, and with it the revision.
  func restore() throws {
    try restart { try $0.restore() }
    did(.restored)
  }

  private func restart(_ body: (EtcdNode) throws -> Void) throws {
    for node in members.nodes { node.end() }
    for node in members.nodes { try body(node) }
    for node in members.nodes { try node.start() }
    try waitForAnswer()
  }

  /// Counts what it has done.
  private func did(_ deed: Deed, _ times: Int = 1, _ detail: String = "") {
    counts[deed, default: 0] += times
    report("\(deed.rawValue) \(detail)")
  }

  private func report(_ what: String) {
    if isVerbose { Terminal.say("etcd: \(what)") }
  }
}
