import Dispatch
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeInspection

@Suite("Names of the package", .blocking, .bothEngines)
struct OwnNamesTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  /// Texts that once were names of the package, and a few that resemble its paths.
  private static let texts = [
    "defaults", "@defaults", "peer/x", "peer/x/messages", "@peer/pairing/x", "queue/jobs",
    "own/values/defaults", "../own/values/defaults", "file-presenters", "jobs",
  ]

  @Test("and those of users are never the same thing, whatever their text", arguments: texts)
  func apart(text: String) throws {
    // Given a value of the package under each name,
    try container.own.value(text).replace(with: "own")
    _ = try container.own.queue(text).sender("s").enqueue("own")
    let own = try container.own.presence(text).enter()
    // when users remove and replace everything under their names,
    try container.value(text).replace(with: "user")
    _ = try container.queue(text).sender("s").enqueue("user")
    let user = try container.presence(text).enterExclusively()
    try container.notification(text).post()
    // then each still has its own.
    #expect(try container.own.value(text).read() == "own")
    #expect(try container.value(text).read() == "user")
    for (queue, payload) in [(container.own.queue(text), "own"), (container.queue(text), "user")] {
      let consumer = try queue.consume()
      let entry = try consumer.next(until: .now)
      #expect(entry?.payload == .string(payload))
      try entry?.acknowledge()
      #expect(try consumer.isIdle())
    }
    #expect(try container.own.presence(text).members().map(\.id) == [own.id])
    #expect(try container.presence(text).members().map(\.id) == [user.id])
    #expect(try container.valueIdentifiers() == [text])
    #expect(try container.own.valueIdentifiers() == [text])
    #expect(try container.queueNames() == [text])
    #expect(try container.presenceNames() == [text])
    try container.value(text).remove()
    #expect(try container.own.value(text).read() == "own")
  }

  // On etcd only one of them used to be listed.
  @Test("and of users that are equal as strings, and not byte for byte, are two")
  func equalStrings() throws {
    let names = ["e\u{301}", "\u{E9}"]
    for (name, text) in zip(names, ["a", "a longer text"]) {
      try container.value(name).replace(with: .string(text))
    }
    let found = try container.valueIdentifiers().map { Array($0.utf8) }
    #expect(Set(found) == Set(names.map { Array($0.utf8) }))
    let sizes = try container.report(ReportScope(.members)).names.values.compactMap(\.bytes)
    #expect(sizes.count == 2 && sizes[0] < sizes[1], "\(sizes)")
  }

  @Test(
    "are reported apart from those of users, and none of them is foreign",
    .onlyDirectories("it reads the report of a directory"))
  func reported() throws {
    try container.own.value("defaults").replace(with: [:])
    try container.value("defaults").replace(with: 1)
    _ = try container.queue("jobs").sender("s").enqueue(1)
    let consumer = try container.queue("jobs").consume()
    let report = try container.report()
    #expect(report.names.values.map(\.identifier) == ["defaults"])
    #expect(report.own.values.map(\.identifier) == ["defaults"])
    #expect(report.names.presences.isEmpty)
    #expect(report.names.queues.first?.consumer?.processID == Program.processID)
    #expect(report.foreignEntries.isEmpty)
    #expect(report.failures.isEmpty)
    consumer.close()
  }

  @Test(
    "of values of another shape are reported as damaged; users' values are not examined",
    .onlyDirectories("it reads the report of a directory"))
  func shape() throws {
    try container.own.value("defaults").replace(with: 1)
    try container.value("defaults").replace(with: 1)
    let report = try container.report(
      ReportScope(
        .names,
        use: { name, kind in
          guard kind.isOwn, name == "defaults" else { return nil }
          return OwnUse("the defaults") { $0 == 1 ? "it is a number" : nil }
        }))
    let own = try #require(report.own.values.first)
    #expect(own.condition == .unreadable && own.problem?.reason == "it is a number", "\(report)")
    #expect(own.title == "the defaults")
    #expect(report.names.values.first?.condition == .readable, "\(report)")
  }

  @Test(
    "that were planted are foreign; an unfinished directory is left alone for a minute",
    .onlyDirectories("it plants directories"))
  func planted() throws {
    try container.own.value("defaults").replace(with: [:])
    for name in ["own/x", "own/.new-1", "own/watches", "own/inbox"] {
      try makeDirectory(directory.path + "/" + name)
    }
    let report = try container.report()
    #expect(report.foreignEntries.map(\.path) == [directory.path + "/own/x"])
    #expect(report.leftovers.isEmpty)
  }

  @Test("of a queue: a second consumer gets the name of the first")
  func consumed() throws {
    let consumer = try container.queue("jobs").consume()
    let error = try #require(throws: WormholeError.self) {
      _ = try container.queue("jobs").consume(until: .now)
    }
    #expect(error.action == "consume \"jobs\"")
    #expect(error.reason.contains("process \(Program.processID)"), "\(error)")
    #expect(error.reason.contains("only one process consumes it"), "\(error)")
    consumer.close()
  }

  @Test(
    "survive the replacement of any parent directory for observers",
    .onlyDirectories("it replaces directories"))
  func observed() throws {
    let heard = Heard<PlainSnapshot>()
    let value = container.own.value("k")
    try value.replace(with: "first")
    let observation = try value.observe(on: DispatchQueue(label: "own")) { heard.add($0) }
    for part in ["own/values/k", "own/values", "own"] {
      try directory.shell("rm -r \(part)")
      try value.replace(with: .string(part))
      try eventually("\(part) is watched again") {
        try heard.all.last?.propertyList() == .string(part)
      }
    }
    observation.cancel()
  }
}
