import Dispatch
import Wormhole
import WormholeEtcd
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// A container on etcd, beside the same requests on a raw connection to the same cluster.
struct EtcdRows {
  let bench: Bench
  let members: EtcdMembers
  /// The directory of the members, and of this machine's part of the container.
  let directory: String
  let location: String
  let container: SharedContainer
  private let title: String

  static func measure(_ bench: Bench) throws -> [Row] {
    try [1, 3].flatMap { try EtcdRows(bench, $0).all() }
  }

  private init(_ bench: Bench, _ count: Int) throws {
    self.bench = bench
    directory = try bench.directory("etcd-\(count)")
    var setting = EtcdNode.Setting(directory: directory)
    setting.isMeasured = true
    members = try EtcdMembers(count, setting)
    let hosts = members.nodes.map { $0.endpoint.dropFirst("http://".count) }
    location = "etcd://\(hosts.joined(separator: ","))/benchmarks"
    // Answers as soon as there is a leader.
    container = try Self.container(location, directory)
    title = "etcd, \(count) node\(count == 1 ? "" : "s"): "
  }

  static func container(_ location: String, _ directory: String) throws -> SharedContainer {
    try SharedContainer(at: EtcdLocation(location), companion: directory + "/local")
  }

  private func all() throws -> [Row] {
    let isAlone = members.nodes.count == 1
    // Before the others, which would make it reuse their memory.
    var rows = isAlone ? [try names()] : []
    rows += try values() + latency() + queues() + requests() + crowd()
    rows.append(try files())
    rows += try besideRivals(withOtherServers: isAlone)
    return rows + [isAlone ? start() : try reconnecting()]
  }

  /// Measures operations beside raw requests, or beside another program.
  func compare(
    _ name: String, runs: Int = 100, expected: Row.Expectation? = .ratioAtMost(1.5),
    ours: @escaping () throws -> Void, floor: @escaping () throws -> Void
  ) throws -> Row {
    try bench.compare(
      title + name, rounds: bench.rounds, runs: bench.scaled(runs), expected: expected, ours: ours,
      floor: floor)
  }

  func connection() throws -> RawEtcd { try RawEtcd(members.nodes[0].endpoint) }

  /// 200 bytes, as in the other rows.
  static let text = String(repeating: "x", count: RawValue.contentBytes)

  /// The raw writes for a floor: the cheapest one, and the one that a publication needs, because a
  /// plain put could overwrite newer content.
  private static func writes(_ key: String) -> [(name: String, request: [UInt8])] {
    [("put", RawEtcd.put(key, text)), ("transaction", RawEtcd.transaction(key, text))]
  }

  private func values() throws -> [Row] {
    let value = container.value("count")
    try value.replace(with: SharedCount.content(0))
    let raw = try connection()
    let writes = Self.writes("raw")
    let get = RawEtcd.get("raw")
    try raw.ask(writes[0].request)
    var number: UInt64 = 0
    return try writes.map { name, write in
      try compare(
        "publish / raw \(name)", runs: 200,
        ours: {
          number += 1
          try value.replace(with: SharedCount.content(number))
        }, floor: { try raw.ask(write) })
    } + [
      compare(
        "read / raw get", runs: 200, ours: { _ = try value.read() }, floor: { try raw.ask(get) }),
      compare(
        "update / raw get + transaction", runs: 200, ours: { try SharedCount.increment(value) },
        floor: {
          try raw.ask(get)
          try raw.ask(writes[1].request)
        }),
    ]
  }

  /// Measures from the beginning of a publication until an observer has it.
  private func latency() throws -> [Row] {
    let observed = try ObservedCount(container.value("observed"))
    let (raw, watching) = (try connection(), try connection())
    try raw.ask(RawEtcd.put("raw-observed", Self.text))
    try watching.watch("raw-observed")
    return try Self.writes("raw-observed").map { name, write in
      try compare(
        "publication → observer / raw \(name) → line of a watch", ours: observed.publish,
        floor: {
          try raw.ask(write)
          try watching.line()
        })
    }
  }

  private func queues() throws -> [Row] {
    let queue = container.queue("q")
    let (sender, raw) = (try queue.sender("a"), try connection())
    let change = RawEtcd.transaction("raw-queue", Self.text)
    let sending = try compare(
      "queue: send / raw transaction", ours: { try sender.enqueue(SharedCount.payload) },
      floor: { try raw.ask(change) })
    let consumer = try queue.consume()
    defer { consumer.close() }
    while try consumer.next(until: .now)?.acknowledge() != nil {}
    let each = bench.scaled(100)
    let taking = try bench.compare(
      title + "queue: take + acknowledge / 2 raw transactions", rounds: bench.rounds,
      expected: .ratioAtMost(1.5),
      ours: {
        for _ in 0..<each { try sender.enqueue(SharedCount.payload) }
        return try nanosecondsPerEntry(each, consumer)
      },
      floor: {
        try nanosecondsPerRun(each) {
          try raw.ask(change)
          try raw.ask(change)
        }
      })
    return [sending, taking]
  }

  /// The floor does the same as a request: a write that a watch reports, and one back.
  private func requests() throws -> [Row] {
    let other = try Worker("answer", [location, directory])
    let session = try PeerSession("asker", in: container)
    let connections = try (0..<4).map { _ in try connection() }
    for (key, watching) in [("raw-request", 1), ("raw-reply", 3)] {
      try connections[watching].watch(key)
    }
    let rows = try zip(Self.writes("raw-request"), Self.writes("raw-reply")).map { request, reply in
      try compare(
        "request / 2 raw \(request.name)s → lines of watches",
        ours: { _ = try session.request(SharedCount.payload, to: "answerer") },
        floor: {
          try connections[0].ask(request.request)
          try connections[1].line()
          try connections[2].ask(reply.request)
          try connections[3].line()
        })
    }
    withExtendedLifetime(other) {}
    return rows
  }

  /// Measures a file from its sender to its receiver, which has it on this machine afterwards. The
  /// floor puts the same pieces and gets them.
  private func files() throws -> Row {
    let (pieces, piece) = (8, 512 << 10)
    let path = directory + "/file"
    try FileDescriptor.open(path, [.writeOnly, .create])
      .writeAll(Array(repeating: UInt8(ascii: "x"), count: pieces * piece))
    let queue = container.queue("files")
    let (sender, consumer) = (try queue.sender("a"), try queue.consume())
    defer { consumer.close() }
    let raw = try connection()
    let text = String(repeating: "x", count: piece)
    let requests =
      (0..<pieces).map { RawEtcd.put("raw-piece-\($0)", text) }
      + (0..<pieces).map { RawEtcd.get("raw-piece-\($0)") }
    var number = 0
    return try bench.compare(
      title + "file of 4 MiB: send + receive / 8 raw puts and gets", rounds: min(bench.rounds, 5),
      runs: bench.scaled(4), expected: .ratioAtMost(1.5),
      ours: {
        number += 1
        let stage = try sender.stage("file-\(number)", bytes: Int64(pieces * piece))
        let source = try FileDescriptor.open(path, .readOnly)
        try stage.copy(
          source, source.status(), durability: .standard, check: {}, copied: { _ in })
        try sender.enqueue([QueueAttachment.key: .string("file-\(number)")])
        guard let entry = try consumer.next(until: .now + .seconds(10)),
          try entry.attachment?.condition() == .present(bytes: Int64(pieces * piece))
        else { throw Failure(description: "no file") }
        try entry.acknowledge()
      },
      floor: { for request in requests { try raw.ask(request) } })
  }

  /// Measures threads that publish at once: each publication's share of the whole.
  private func crowd() throws -> [Row] {
    let writers = 8
    let values = (0..<writers).map { container.value("crowd-\($0)") }
    let connections = try (0..<writers).map { _ in try connection() }
    let each = bench.scaled(200)
    let content = SharedCount.content(1)
    return try Self.writes("raw").map(\.name).enumerated().map { kind, name in
      try bench.compare(
        title + "publish, \(writers) threads / raw \(name)s, \(writers) connections",
        rounds: bench.rounds, expected: .ratioAtMost(1.5),
        ours: {
          try nanosecondsPerRun(threads: writers, each: each) { index in
            let value = values[index]
            return { try value.replace(with: content) }
          }
        },
        floor: {
          try nanosecondsPerRun(threads: writers, each: each) { index in
            let connection = connections[index]
            let write = Self.writes("raw-\(index)")[kind].request
            return { try connection.ask(write) }
          }
        })
    }
  }

  /// Observes many names, which share one connection.
  private func names() throws -> Row {
    let warmUp = try ObserverRows.observe("warm-up", ObserverRows.warmUpCount, in: container)
    let (count, sockets) = (1_000, try socketCount())
    let (tokens, bytes, time) = try ObserverRows.observe("name", count, in: container)
    let added = try socketCount() - sockets
    for token in warmUp.tokens + tokens { token.cancel() }
    return Row(
      title + "memory of an observed name", .bytes, ours: [bytes],
      notes: [
        "\(count) more names took \(added) more connections, and \(fixed(time / 1_000, 0)) µs each"
      ])
  }

  private func socketCount() throws -> Int {
    try FileDescriptor.open("/proc/self/fd", [.readOnly, .directory]).entries().count { entry in
      // The descriptor of the listing itself is closed by then.
      let target = try ifPresent(linkTarget("/proc/self/fd/" + entry.name.text))
      return target?.hasPrefix("socket:") ?? false
    }
  }

  /// Measures how long a publication takes to reach its observer if the member of both was just
  /// killed.
  private func reconnecting() throws -> Row {
    let observed = try ObservedCount(container.value("reconnecting"))
    // Each member in turn, so the serving one is among them once in each round.
    let times = try (1...6).map { round in
      try observed.publish()
      members.nodes[round % 3].end()
      let time = try nanosecondsPerRun(1, observed.publish)
      try members.nodes[round % 3].start()
      pauseThread(.seconds(2))
      return time
    }
    return Row(
      title + "publication → observer after a member was killed, worst of 6", .milliseconds,
      ours: [times.max() ?? 0],
      notes: ["each: " + times.map { fixed($0 / 1e6, 1) + " ms" }.joined(separator: ", ")])
  }

  private func start() -> Row {
    do {
      return try StartRow.measure(bench, sendingTo: location, state: directory)
    } catch {
      return Row("wormhole send on etcd", ours: [], notes: ["not measured: \(error)"])
    }
  }
}

/// A value with ascending numbers, and what its observers have received.
final class ObservedCount {
  private let value: PlainValue
  private let heard: [Heard<UInt64>]
  private let tokens: [ObservationToken]
  private var number: UInt64 = 0

  init(_ value: PlainValue, by observers: Int = 1) throws {
    self.value = value
    heard = (0..<observers).map { _ in Heard() }
    tokens = try heard.map { heard in
      try value.observe(on: DispatchQueue(label: "observer")) { snapshot in
        orDie { heard.note(SharedCount.number(try snapshot.propertyList())) }
      }
    }
  }

  /// Publishes the next number, and waits until all observers have it.
  func publish() throws {
    number += 1
    try value.replace(with: SharedCount.content(number))
    for observer in heard { try observer.wait { $0 >= number } }
  }
}
