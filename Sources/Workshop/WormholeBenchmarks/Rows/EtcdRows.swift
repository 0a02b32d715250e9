import Dispatch
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// A container on etcd, beside the same requests on a raw connection to the same cluster.
enum EtcdRows {
  private static let writers = 8

  static func measure(_ bench: Bench) throws -> [Row] {
    try [1, 3].flatMap { try measure(bench, members: $0) }
  }

  private static func measure(_ bench: Bench, members: Int) throws -> [Row] {
    let title = members == 1 ? "etcd, 1 node: " : "etcd, \(members) nodes: "
    let directory = try bench.directory("etcd-\(members)")
    guard let servers = try EtcdServers(members, directory) else {
      return [
        Row(
          title + "not measured", ours: [],
          notes: ["etcd is not installed (Debian: apt-get install etcd-server)"])
      ]
    }
    // Answers as soon as there is a leader.
    let container = try servers.container()
    // Before the others, which would make it reuse their memory.
    var rows = members == 1 ? try names(bench, container, title: title) : []
    rows += try values(bench, servers, container: container, title: title)
    rows += try latency(bench, servers, container: container, title: title)
    rows += try queues(bench, servers, container: container, title: title)
    rows += try requests(bench, servers, container: container, directory: directory, title: title)
    rows += try crowd(bench, servers, container: container, title: title)
    rows.append(try files(bench, servers, container: container, directory: directory, title: title))
    if members == 1 {
      rows += try start(bench, servers, directory: directory)
    } else {
      rows.append(try reconnecting(bench, servers, container: container, title: title))
    }
    return rows
  }

  /// 200 bytes, as in the other rows.
  private static let text = String(repeating: "x", count: RawValue.contentBytes)

  private static func values(
    _ bench: Bench, _ servers: EtcdServers, container: SharedContainer, title: String
  ) throws -> [Row] {
    let value = container.value("count")
    try value.replace(with: SharedCount.content(0))
    let raw = try servers.connection()
    let (put, get, change) = (
      RawEtcd.put("raw", text), RawEtcd.get("raw"), RawEtcd.transaction("raw", text)
    )
    try raw.ask(put)
    var number: UInt64 = 0
    func compare(
      _ name: String, ours: @escaping () throws -> Void, floor: @escaping () throws -> Void
    ) throws -> Row {
      try bench.compare(
        title + name, rounds: bench.rounds, runs: bench.scaled(200), expected: .ratioAtMost(1.5),
        ours: ours, floor: floor)
    }
    return [
      try compare(
        "publish / raw put",
        ours: {
          number += 1
          try value.replace(with: SharedCount.content(number))
        }, floor: { try raw.ask(put) }),
      try compare(
        "publish / raw transaction",
        ours: {
          number += 1
          try value.replace(with: SharedCount.content(number))
        }, floor: { try raw.ask(change) }),
      try compare(
        "read / raw get", ours: { _ = try value.read() }, floor: { try raw.ask(get) }),
      try compare(
        "update / raw get + transaction", ours: { try SharedCount.increment(value) },
        floor: {
          try raw.ask(get)
          try raw.ask(change)
        }),
    ]
  }

  /// Measures from the beginning of a publication until an observer has it.
  private static func latency(
    _ bench: Bench, _ servers: EtcdServers, container: SharedContainer, title: String
  ) throws -> [Row] {
    let (value, heard) = (container.value("observed"), Heard())
    let observation = try value.observe(on: DispatchQueue(label: "observer")) { snapshot in
      orDie { heard.note(SharedCount.number(try snapshot.propertyList())) }
    }
    defer { observation.cancel() }
    let (raw, watching) = (try servers.connection(), try servers.connection())
    try raw.ask(RawEtcd.put("raw-observed", text))
    try watching.watch("raw-observed")
    var number: UInt64 = 0
    return try writes("raw-observed").map { name, write in
      try bench.compare(
        title + "publication → observer / raw \(name) → line of a watch", rounds: bench.rounds,
        runs: bench.scaled(100), expected: .ratioAtMost(1.5),
        ours: {
          number += 1
          try value.replace(with: SharedCount.content(number))
          try heard.wait(for: number)
        },
        floor: {
          try raw.ask(write)
          try watching.line()
        })
    }
  }

  /// The raw writes for a floor: the cheapest one, and the one that a publication needs, because a
  /// plain put could overwrite newer content.
  private static func writes(_ key: String) -> [(name: String, request: [UInt8])] {
    [("put", RawEtcd.put(key, text)), ("transaction", RawEtcd.transaction(key, text))]
  }

  private static func queues(
    _ bench: Bench, _ servers: EtcdServers, container: SharedContainer, title: String
  ) throws -> [Row] {
    let queue = container.queue("q")
    let (sender, raw) = (try queue.sender("a"), try servers.connection())
    let change = RawEtcd.transaction("raw-queue", text)
    let each = bench.scaled(100)
    let sending = try bench.compare(
      title + "queue: send / raw transaction", rounds: bench.rounds, runs: each,
      expected: .ratioAtMost(1.5), ours: { try sender.enqueue(SharedCount.payload) },
      floor: { try raw.ask(change) })
    let consumer = try queue.consume()
    defer { consumer.close() }
    while try consumer.next(until: .now)?.acknowledge() != nil {}
    let taking = try bench.compare(
      title + "queue: take + acknowledge / 2 raw transactions", rounds: bench.rounds,
      expected: .ratioAtMost(1.5),
      ours: {
        for _ in 0..<each { try sender.enqueue(SharedCount.payload) }
        return try nanosecondsPerRun(each) {
          try consumer.next(until: .now + .seconds(5))?.acknowledge()
        }
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
  private static func requests(
    _ bench: Bench, _ servers: EtcdServers, container: SharedContainer, directory: String,
    title: String
  ) throws -> [Row] {
    let other = try Worker("answer", [servers.location, directory])
    let session = try PeerSession("asker", in: container)
    let connections = try (0..<4).map { _ in try servers.connection() }
    for (key, watching) in [("raw-request", 1), ("raw-reply", 3)] {
      try connections[watching].watch(key)
    }
    let rows = try zip(writes("raw-request"), writes("raw-reply")).map { request, reply in
      try bench.compare(
        title + "request / 2 raw \(request.name)s → lines of watches", rounds: bench.rounds,
        runs: bench.scaled(100), expected: .ratioAtMost(1.5),
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
  private static func files(
    _ bench: Bench, _ servers: EtcdServers, container: SharedContainer, directory: String,
    title: String
  ) throws -> Row {
    let (pieces, piece) = (8, 512 << 10)
    let path = directory + "/file"
    try FileDescriptor.open(path, [.writeOnly, .create])
      .writeAll(Array(repeating: UInt8(ascii: "x"), count: pieces * piece))
    let queue = container.queue("files")
    let (sender, consumer) = (try queue.sender("a"), try queue.consume())
    defer { consumer.close() }
    let raw = try servers.connection()
    let text = String(repeating: "x", count: piece)
    let puts = (0..<pieces).map { RawEtcd.put("raw-piece-\($0)", text) }
    let gets = (0..<pieces).map { RawEtcd.get("raw-piece-\($0)") }
    var number = 0
    return try bench.compare(
      title + "file of 4 MiB: send + receive / 8 raw puts and gets", rounds: min(bench.rounds, 5),
      runs: bench.scaled(4), expected: .ratioAtMost(1.5),
      ours: {
        number += 1
        let stage = try sender.stage("file-\(number)", bytes: Int64(pieces * piece))
        let source = try FileDescriptor.open(path, .readOnly)
        _ = try stage.copy(
          source, source.status(), durability: .standard, check: {}, copied: { _ in })
        try sender.enqueue([QueueAttachment.key: .string("file-\(number)")])
        guard let entry = try consumer.next(until: .now + .seconds(10)),
          try entry.attachment?.condition() == .present(bytes: Int64(pieces * piece))
        else { throw Failure(description: "no file") }
        try entry.acknowledge()
      },
      floor: {
        for put in puts { try raw.ask(put) }
        for get in gets { try raw.ask(get) }
      })
  }

  /// Measures threads that publish at once: each publication's part of the whole.
  private static func crowd(
    _ bench: Bench, _ servers: EtcdServers, container: SharedContainer, title: String
  ) throws -> [Row] {
    let values = (0..<writers).map { container.value("crowd-\($0)") }
    let connections = try (0..<writers).map { _ in try servers.connection() }
    let each = bench.scaled(200)
    let content = SharedCount.content(1)
    let kinds = writes("raw").map(\.name).enumerated()
    return try kinds.map { kind, name in
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
            let (connection, write) = (connections[index], writes("raw-\(index)")[kind].request)
            return { try connection.ask(write) }
          }
        })
    }
  }

  /// Observes many names, which share one connection.
  private static func names(
    _ bench: Bench, _ container: SharedContainer, title: String
  ) throws -> [Row] {
    let count = 1_000
    let queue = DispatchQueue(label: "observers")
    func observe(_ name: String) throws -> ObservationToken {
      try container.value(name).observe(on: queue) { _ in }
    }
    var observations = try (0..<ObserverRows.warmUp).map { try observe("warm-up-\($0)") }
    let (bytes, sockets) = (try ObserverRows.residentBytes(), try socketCount())
    var index = 0
    let time = try nanosecondsPerRun(count) {
      observations.append(try observe("name-\(index)"))
      index += 1
    }
    let added = try socketCount() - sockets
    let row = Row(
      title + "memory of an observed name", .bytes,
      ours: [(try ObserverRows.residentBytes() - bytes) / Double(count)],
      notes: [
        "\(count) more names took \(added) more connections, and \(fixed(time / 1_000, 0)) µs each"
      ])
    for observation in observations { observation.cancel() }
    return [row]
  }

  private static func socketCount() throws -> Int {
    try FileDescriptor.open("/proc/self/fd", [.readOnly, .directory]).entries().count { entry in
      do throws(Errno) {
        return try linkTarget("/proc/self/fd/" + entry.name.text).hasPrefix("socket:")
      } catch {
        // The descriptor of the listing itself.
        return false
      }
    }
  }

  /// Measures how long a publication takes to its observer if the member of both has just been
  /// killed.
  private static func reconnecting(
    _ bench: Bench, _ servers: EtcdServers, container: SharedContainer, title: String
  ) throws -> Row {
    let (value, heard) = (container.value("reconnecting"), Heard())
    let observation = try value.observe(on: DispatchQueue(label: "observer")) { snapshot in
      orDie { heard.note(SharedCount.number(try snapshot.propertyList())) }
    }
    defer { observation.cancel() }
    var times: [Double] = []
    // Each member in turn, so the one that serves is among them once in each round.
    for number in 1...6 {
      let member = number % 3
      try value.replace(with: SharedCount.content(UInt64(number * 2)))
      try heard.wait(for: UInt64(number * 2))
      servers.kill(member)
      times.append(
        try nanosecondsPerRun(1) {
          try value.replace(with: SharedCount.content(UInt64(number * 2 + 1)))
          try heard.wait(for: UInt64(number * 2 + 1))
        })
      try servers.start(member)
      pauseThread(.seconds(2))
    }
    return Row(
      title + "publication → observer after a member was killed, worst of 6", .milliseconds,
      ours: [times.max() ?? 0],
      notes: ["each: " + times.map { fixed($0 / 1e6, 1) + " ms" }.joined(separator: ", ")])
  }

  private static func start(
    _ bench: Bench, _ servers: EtcdServers, directory: String
  ) throws -> [Row] {
    do {
      return [try StartRow.measure(bench, sendingTo: servers.location, state: directory)]
    } catch {
      return [Row("wormhole send on etcd", ours: [], notes: ["not measured: \(error)"])]
    }
  }
}

/// The last number reported to an observer.
private final class Heard: Sendable {
  private let last = Mutex<UInt64>(0)
  private let news = DispatchSemaphore(value: 0)

  func note(_ number: UInt64) {
    last.withLock { $0 = max($0, number) }
    news.signal()
  }

  func wait(for number: UInt64) throws {
    while last.withLock({ $0 < number }) {
      guard news.wait(timeout: .now() + .seconds(30)) == .success else {
        throw Failure(description: "the observer was not notified")
      }
    }
  }
}
