import Dispatch
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// A request and its answer between two processes. The floor does the same with bare calls: one
/// side creates, writes and renames a file with a fresh name, and the other side waits for inotify,
/// opens, reads and unlinks it.
enum RequestRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("request")
    let directory = try bench.directory("request-raw")
    let other = try Worker("answer", [bench.path + "/request"])
    let rawOther = try Worker("answer-raw", [directory])
    let session = try PeerSession("asker", in: container)
    let post = try RawMail(directory, hears: "to-asker", sends: "to-answerer")
    let count = bench.scaled(100)
    func asking(_ ask: @escaping () throws -> Void) -> () throws -> Double {
      { try median(of: count) { try nanosecondsPerRun(1, ask) } }
    }
    func request(_ peer: String) -> () throws -> Double {
      asking { _ = try session.request(SharedCount.payload, to: peer) }
    }
    let results = try alternate(
      rounds: bench.rounds, [request("answerer"), asking { try post.ask() }, request("task")])
    let rows = [
      Row(
        "request, median / inotify", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1.5)),
      Row("request to task, median / inotify", ours: results[2], floor: results[1]),
    ]
    withExtendedLifetime((other, rawOther)) {}
    return try rows + [together(bench, session)]
  }

  /// Measures many requests at once: each request's share of the whole. The floor is our own code
  /// with a few of them.
  private static func together(_ bench: Bench, _ session: PeerSession) throws -> Row {
    let (few, many) = (100, bench.scaled(10_000))
    var bytes = 0.0
    func ask(_ count: Int) throws -> Double {
      let group = DispatchGroup()
      let failure = FirstFailure()
      let before = try ObserverRows.residentBytes()
      let time = try nanosecondsPerRun {
        for _ in 0..<count {
          group.enter()
          let deadline = ContinuousClock.now + .seconds(60)
          session.request(SharedCount.payload, to: "answerer", until: deadline) { result in
            failure.noting { _ = try result.get() }
            group.leave()
          }
        }
        // Nearly all are now under way. Later rounds find the memory of the first.
        if count == many {
          bytes = max(bytes, (try ObserverRows.residentBytes() - before) / Double(count))
        }
        group.wait()
      }
      try failure.check()
      return time / Double(count)
    }
    // Each round frees two inodes for each request, and ext4 without a journal looks at all of them,
    // for a few minutes, when it needs a new one.
    let results = try alternate(
      rounds: min(bench.rounds, 5),
      [{ try ask(many) }, { try median(of: 10) { try ask(few) } }])
    return Row(
      "request, \(many) at once, each / \(few) at once", ours: results[0], floor: results[1],
      expected: .ratioAtMost(1.2),
      notes: ["\(Int(bytes)) B of memory for each in the process that asks"])
  }

  /// - Parameter local: This machine's directory of a container on etcd.
  static func answer(_ place: String, local: String? = nil) throws {
    let container =
      if let local { try EtcdRows.container(place, local) } else {
        try SharedContainer(path: place)
      }
    let answerer = try PeerSession("answerer", in: container)
    answerer.handleRequests(on: DispatchQueue(label: "answer")) { request in
      orDie { try request.reply(request.value) }
    }
    let task = try PeerSession("task", in: container)
    task.handleRequests { $0.value }
    try answerer.activate()
    try task.activate()
    try Worker.serve()
    withExtendedLifetime((answerer, task)) {}
  }

  static func answerRaw(_ directory: String) throws {
    let mail = try RawMail(directory, hears: "to-answerer", sends: "to-asker")
    try Worker.repeatUntilEnd { try mail.send(mail.next()) }
  }
}

/// The floor's mailboxes: one for each side.
final class RawMail {
  private let sends: FileDescriptor
  private let hears: FileDescriptor
  private let events: FileDescriptor
  private var sent = 0
  private let content: [UInt8]

  init(_ directory: String, hears: String, sends: String) throws {
    for name in [hears, sends] { try makeDirectoryIfMissing(directory + "/" + name) }
    self.sends = try FileDescriptor.open(directory + "/" + sends, [.readOnly, .directory])
    self.hears = try FileDescriptor.open(directory + "/" + hears, [.readOnly, .directory])
    events = try .blockingEventQueue()
    _ = try events.addWatch(directory + "/" + hears, [.movedTo, .onlyDirectory])
    content = try SharedCount.payload.binaryBytes()
  }

  func ask() throws {
    try send(content)
    _ = try next()
  }

  func send(_ bytes: [UInt8]) throws(Errno) {
    try writeAndRename(bytes, to: "\(sent)", in: sends)
    sent += 1
  }

  func next() throws(Errno) -> [UInt8] {
    var name = ""
    while name.isEmpty {
      _ = try events.takeNamedEvents { _, _, bytes in
        name = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
    }
    let file = try FileDescriptor.open(name, at: hears.rawValue, .readOnly)
    let bytes = try file.readToEnd(expectedBytes: content.count, maximumBytes: 65_536)
    try removeFile(name, at: hears.rawValue)
    return bytes
  }
}
