import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// What operations cost in requests, each of which is a round trip: a change here is a decision.
///
/// Streams, keep-alives and probes go other ways and are not counted.
@Suite("The requests of an operation", .blocking, .needsEtcd)
struct RequestCostTests {
  private let directory: TemporaryDirectory
  private let requests = CountedRequests()
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    let location = EtcdLocation(
      endpoints: [try EtcdNode.shared.get().endpoint], prefix: "cost/\(Nonce.next())")
    container = try SharedContainer(
      try EtcdContainer.created(location, through: requests), at: location,
      companion: directory.path + "/local")
    // Before its first write a process asks the member who it is.
    _ = try container.value("first").read()
  }

  /// The paths of the requests of one operation.
  private func paths(_ operation: () throws -> Void) rethrows -> [String] {
    let before = requests.paths.count
    try operation()
    return requests.paths[before...].filter { $0 != "lease/keepalive" && $0 != "lease/revoke" }
  }

  @Test("of values, notifications and logs is one")
  func values() throws {
    let value = container.value("x")
    #expect(try paths { try value.replace(with: 1) } == ["kv/txn"])
    #expect(try paths { try container.value("x").update { $0 = 2 } } == ["kv/txn"])
    #expect(try paths { _ = try value.read() } == ["kv/range"])
    #expect(try paths { try container.notification("n").post() }.count == 1)
    try container.log("l").append(1)
    let log = container.log("l")
    try log.append(2)
    #expect(try paths { try log.append(3) } == ["kv/txn"])
  }

  @Test("of a role are three: the session, entering and leaving")
  func roles() throws {
    var registration: PresenceRegistration?
    let entering = try paths {
      registration = try container.presence("role").enterExclusively(until: soon)
    }
    #expect(entering == ["lease/grant", "kv/txn"])
    #expect(try paths { try registration?.confirm() } == ["kv/txn"])
    #expect(paths { registration?.close() } == ["kv/txn"])
    // The session lasts for a moment, and the next one in it needs no other.
  }

  @Test("of a queue are those of its decisions: to send, to take, to end")
  func queues() throws {
    let queue = container.queue("q")
    let sender = try queue.sender("a")
    try sender.enqueue(0)
    #expect(try paths { try sender.enqueue(1) } == ["kv/txn"])
    #expect(try paths { try sender.enqueue(2) } == ["kv/txn"])
    let consumer = try queue.consume()
    var entry: PlainEntry?
    for number in 0...2 {
      let taking = try paths { entry = try consumer.next(until: soon) }
      #expect(taking == ["kv/txn"], "entry \(number)")
      #expect(try paths { try entry?.acknowledge() } == ["kv/txn"], "entry \(number)")
    }
    consumer.close()
  }

  @Test("of a look at the container are one for the names, one for values, two for a queue")
  func looking() throws {
    for name in ["a", "b"] { try container.value(name).replace(with: 1) }
    try container.queue("q").sender("a").enqueue(1)
    let content = try paths { _ = try container.report(ReportScope(.names)) }
    // The values, the counts of the queue, and its consumers.
    #expect(content.count == 1 + 1 + 2, "\(content)")
    let members = try paths { _ = try container.report(ReportScope(.members)) }
    #expect(members.count - content.count == 3, "\(members)")
    // Values come many at once.
    for name in 0..<40 { try container.value("v\(name)").replace(with: 1) }
    var names = 0
    let many = try paths { names = try container.report(ReportScope(.names)).names.values.count }
    #expect(names == 42 && many.count == content.count + 1, "\(many)")
  }

  @Test("of a look at the cluster do not hold up those for the names")
  func lookingAtCluster() throws {
    try container.value("a").replace(with: 1)
    requests.holdAnswer(of: "cluster/member/list", untilRequestTo: "kv/range")
    let report = try container.report(ReportScope(.members))
    #expect(report.failures.isEmpty && report.names.values.map(\.identifier) == ["a"], "\(report)")
    #expect(report.cluster?.members.isEmpty == false)
  }

  private static let taking = ["lease/grant", "kv/txn", "kv/txn", "kv/txn", "kv/txn"]

  @Test("of a process that takes one entry are five: session, joining, taking, end and leaving")
  func taking() throws {
    let queue = container.queue("q")
    let sender = try queue.sender("a")
    for number in 1...2 { try sender.enqueue(PropertyListValue(number)) }
    let one = try paths {
      let worker = try queue.work()
      try worker.next(until: soon)?.acknowledge()
      worker.close()
    }
    #expect(one == Self.taking)
    try endSession()
    try sender.enqueue(3)
    let leaving = try paths {
      let worker = try queue.work()
      let entry = try worker.next(until: soon)
      worker.takesNoMore()
      try entry?.acknowledge()
      worker.close()
    }
    #expect(leaving == Self.taking.dropLast())
    try endSession()
    let alone = try paths {
      let consumer = try queue.consume()
      try consumer.next(until: soon)?.acknowledge()
      consumer.close()
    }
    #expect(alone == Self.taking)
    #expect(try queue.outstanding().isEmpty && queue.role.members().isEmpty)
  }

  /// The next operation needs another session.
  private func endSession() throws {
    let etcd = try #require(container.engine as? EtcdContainer)
    try etcd.session().end()
  }

  @Test("of a sender's first entry are two, whether or not others wait")
  func sending() throws {
    for name in ["a", "b"] {
      let sender = try container.queue("q").sender(name)
      #expect(try paths { try sender.enqueue(1) } == ["kv/txn", "kv/txn"], "\(name)")
    }
  }

  @Test("of a file are those of its decisions and of its pieces")
  func file() throws {
    let path = directory.path + "/source"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll([1, 2, 3])
    let sender = try container.queue("q").sender("a")
    var stage: (any AttachmentStage)?
    let beginning = try paths { stage = try sender.stage("x", bytes: 3) }
    // The database is looked at meanwhile, by two requests.
    let steps = beginning.filter { $0 == "kv/txn" || $0 == "lease/grant" }
    #expect(steps == ["lease/grant", "kv/txn"])
    #expect(beginning.count == 4, "\(beginning)")
    let source = try FileDescriptor.open(path, .readOnly)
    let copying = try paths {
      _ = try stage?.copy(
        source, source.status(), durability: .standard, check: {}, copied: { _ in })
    }
    #expect(copying == ["kv/put", "kv/txn"])
    try sender.enqueue([QueueAttachment.key: "x"])
    let consumer = try container.queue("q").consume()
    var entry: PlainEntry?
    let receiving = try paths { entry = try consumer.next(until: soon) }
    // The entry is taken, then its file is looked up, taken, and fetched.
    #expect(receiving == ["kv/txn", "kv/txn", "kv/txn", "kv/range"])
    #expect(try paths { try entry?.mark("handled") } == ["kv/txn"])
    #expect(try paths { try entry?.acknowledge() } == ["kv/txn"])
    #expect(try paths { try entry?.unmark() } == [])
    consumer.close()
  }

  @Test("of the opening have the first look of their caller")
  func opening() throws {
    let queue = container.queue("q")
    let location = try #require(container.engine as? EtcdContainer).location
    // Made by now.
    _ = try EtcdContainer.open(location, CallLimit())
    try container.value("x").replace(with: 1)
    try queue.sender("a").enqueue(1)
    do {
      let value = try opened(.value("x")).value("x")
      #expect(try paths { try value.replace(with: 2) } == ["kv/txn"])
      #expect(try value.read() == 2)
    }
    do {
      let value = try opened(.value("x")).value("x")
      #expect(try paths { try value.update { $0 = $0 == 2 ? 3 : nil } } == ["kv/txn"])
      #expect(try value.read() == 3)
    }
    do {
      let sender = try opened(.queue("q", sender: EncodedName("a"))).queue("q").sender("a")
      #expect(try paths { try sender.enqueue(2) } == ["kv/txn"])
      #expect(try queue.outstanding().map(\.payload) == [1, 2])
    }
    do {
      try container.log("l").append(1)
      let log = try opened(.log("l")).log("l")
      #expect(try paths { try log.append(2) } == ["kv/txn"])
      #expect(try log.read(from: .number(2)).next(until: .now)?.payload == 2)
    }
    do {
      let used = try opened(.queue("q")).queue("q")
      var isUsed = false
      #expect(try paths { isUsed = try used.awaitFirstUse(until: .now) {} } == [])
      #expect(isUsed)
      #expect(try paths { _ = try used.awaitFirstUse(until: .now) {} } == ["kv/txn"])
    }
    do {
      let queue = try opened(.queue("q")).queue("q")
      var worker: PlainConsumer?
      var entry: PlainEntry?
      let taking = try paths {
        worker = try queue.work()
        entry = try worker?.next(until: .now)
      }
      #expect(entry?.payload == 1)
      #expect(taking == ["lease/grant", "kv/txn"])
    }
    do {
      let own = Prefetch.queue("q", isOwn: true, sender: EncodedName("a"))
      let sender = try opened(own).own.queue("q").sender("a")
      #expect(try paths { try sender.enqueue(3) } == ["kv/txn"])
      #expect(try container.own.queue("q").outstanding().map(\.payload) == [3])
    }
    // A queue that was not there by then is seen later.
    let unused = try opened(.queue("r")).queue("r")
    try container.queue("r").sender("a").enqueue(1)
    #expect(try unused.awaitFirstUse(until: soon) {})
  }

  /// Opens the container as another process does, by one request.
  private func opened(_ first: Prefetch) throws -> SharedContainer {
    let etcd = try #require(container.engine as? EtcdContainer)
    var limit = CallLimit()
    limit.first = first
    var new: EtcdContainer?
    let opening = try paths {
      new = try EtcdContainer.open(etcd.location, creates: true, limit, through: requests)
    }
    #expect(opening == ["kv/txn"])
    return try SharedContainer(try #require(new), companion: directory.path + "/local")
  }
}
