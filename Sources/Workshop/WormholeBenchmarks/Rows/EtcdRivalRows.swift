import Wormhole
import WormholeSystem
import WormholeWorkshop

/// The same container beside what people would use instead: etcdctl, Redis and NATS, each if it is
/// installed.
extension EtcdRows {
  private static let observers = 100

  func besideRivals(withOtherServers: Bool) throws -> [Row] {
    try [role(), fanOut()] + commands() + (withOtherServers ? redis() + nats() : [])
  }

  // MARK: The same operations

  private func role() throws -> Row {
    let (presence, raw) = (container.presence("lock"), try connection())
    // Keeps the session, like a program that is present.
    let session = try container.presence("owner").enter()
    defer { session.close() }
    let change = RawEtcd.transaction("raw-lock", Self.text)
    return try compare(
      "role: enter + leave / 2 raw transactions", runs: 50,
      ours: { try presence.enterExclusively(until: .now + .seconds(10)).close() },
      floor: {
        try raw.ask(change)
        try raw.ask(change)
      })
  }

  /// Measures from the beginning of a publication until all observers have it.
  private func fanOut() throws -> Row {
    let ours = try ObservedCount(container.value("fan-out"), by: Self.observers)
    let (raw, watches) = (try connection(), try (0..<Self.observers).map { _ in try connection() })
    try raw.ask(RawEtcd.put("raw-fan-out", Self.text))
    for watch in watches { try watch.watch("raw-fan-out") }
    let change = RawEtcd.transaction("raw-fan-out", Self.text)
    return try compare(
      "publication → \(Self.observers) observers / raw transaction → lines of \(Self.observers) watches",
      runs: 20, ours: ours.publish,
      floor: {
        try raw.ask(change)
        for watch in watches { try watch.line() }
      })
  }

  // MARK: Commands

  private func commands() throws -> [Row] {
    guard !isMissing("etcdctl", ["version"]) else { return [] }
    let program = try StartRow.program(loadsLibraries: true)
    let environment = Program.environment(with: ["XDG_STATE_HOME=\(directory)/state"])
    let etcdctl = Program.environment(with: [
      "ETCDCTL_API=3", "ETCDCTL_ENDPOINTS=" + members.nodes.map(\.endpoint).joined(separator: ","),
    ])
    func ours(_ words: [String]) throws {
      try runQuietly(program, ["--container", location] + words, environment: environment)
    }
    func theirs(_ words: [String]) throws {
      try runQuietly("etcdctl", words, environment: etcdctl)
    }
    return try [
      compare(
        "command: wormhole send / etcdctl put", runs: 10, expected: .ratioAtMost(1),
        ours: { try ours(["send", "greeting", "\"\(Self.text)\""]) },
        floor: { try theirs(["put", "greeting", Self.text]) }),
      compare(
        "command: wormhole lock --name NAME -- true / etcdctl lock NAME true", runs: 5,
        expected: .ratioAtMost(0.5), ours: { try ours(["lock", "--name", "l", "--", "true"]) },
        floor: { try theirs(["lock", "l", "true"]) }),
    ]
  }

  private func isMissing(_ program: String, _ words: [String]) -> Bool {
    do {
      try runQuietly(program, words)
      return false
    } catch {
      return true
    }
  }

  // MARK: Other servers

  /// A client's operations on another server.
  private struct Rival {
    let publish: () throws -> Void
    let update: () throws -> Void
    let putAndTake: () throws -> Void
    let fanOut: () throws -> Void
  }

  private func compare(_ name: String, _ rival: Rival) throws -> [Row] {
    let (value, queue) = (container.value("rival"), container.queue("rival"))
    var number: UInt64 = 0
    try value.replace(with: SharedCount.content(number))
    let (sender, consumer) = (try queue.sender("a"), try queue.consume())
    defer { consumer.close() }
    let ours = try ObservedCount(container.value("rival-\(name)"), by: Self.observers)
    func beside(
      _ operation: String, runs: Int = 50, ours: @escaping () throws -> Void,
      floor: @escaping () throws -> Void
    ) throws -> Row {
      try compare("\(operation) / \(name)", runs: runs, expected: nil, ours: ours, floor: floor)
    }
    return try [
      beside(
        "publish",
        ours: {
          number += 1
          try value.replace(with: SharedCount.content(number))
        }, floor: rival.publish),
      compare(
        "update / \(name): read, then write", runs: 50, expected: nil,
        ours: { try SharedCount.increment(value) }, floor: rival.update),
      beside(
        "queue: send + take + acknowledge",
        ours: {
          try sender.enqueue(SharedCount.payload)
          try consumer.next(until: .now + .seconds(10))?.acknowledge()
        }, floor: rival.putAndTake),
      beside(
        "publication → \(Self.observers) observers", runs: 20, ours: ours.publish,
        floor: rival.fanOut),
    ]
  }

  private func redis() throws -> [Row] {
    guard let server = try RivalServer.redis(directory) else { return [] }
    let (client, other) = (try RedisConnection(server), try RedisConnection(server))
    let subscribers = try (0..<Self.observers).map { _ in try RedisConnection(server) }
    for subscriber in subscribers { try subscriber.ask(["SUBSCRIBE", "news"]) }
    let text = Self.text
    return try compare(
      "redis, each command on the disk",
      Rival(
        publish: { try client.ask(["SET", "key", text]) },
        update: {
          try client.ask(["WATCH", "key"])
          try client.ask(["GET", "key"])
          try client.ask(["MULTI"])
          try client.ask(["SET", "key", text])
          try client.ask(["EXEC"])
        },
        putAndTake: {
          try client.ask(["LPUSH", "waiting", text])
          try other.ask(["LMOVE", "waiting", "taken", "RIGHT", "LEFT"])
          try other.ask(["LREM", "taken", "1", text])
        },
        fanOut: {
          try client.ask(["PUBLISH", "news", text])
          for subscriber in subscribers { try subscriber.hear() }
        }))
  }

  private func nats() throws -> [Row] {
    guard let server = try RivalServer.nats(directory) else { return [] }
    let (client, other) = (try NATSConnection(server), try NATSConnection(server))
    try client.ask(
      "$JS.API.STREAM.CREATE.KV_b",
      #"{"name":"KV_b","subjects":["$KV.b.>"],"max_msgs_per_subject":1}"#)
    try client.ask(
      "$JS.API.STREAM.CREATE.Q", #"{"name":"Q","subjects":["q"],"retention":"workqueue"}"#)
    try client.ask(
      "$JS.API.CONSUMER.DURABLE.CREATE.Q.c",
      #"{"stream_name":"Q","config":{"durable_name":"c","ack_policy":"explicit"}}"#)
    let subscribers = try (0..<Self.observers).map { _ in try NATSConnection(server) }
    for subscriber in subscribers { try subscriber.subscribe("news") }
    let text = Self.text
    return try compare(
      "nats, not yet on the disk",
      Rival(
        publish: { try client.ask("$KV.b.key", text) },
        update: {
          try client.ask("$JS.API.STREAM.MSG.GET.KV_b", #"{"last_by_subj":"$KV.b.key"}"#)
          // Without the condition that it is unchanged, which would be a header.
          try client.ask("$KV.b.key", text)
        },
        putAndTake: {
          try client.ask("q", text)
          let answer = try other.ask("$JS.API.CONSUMER.MSG.NEXT.Q.c", "1")
          if let answer { try other.ask(answer, "+ACK") }
        },
        fanOut: {
          try client.publish("news", text)
          for subscriber in subscribers { try subscriber.message() }
        }))
  }
}
