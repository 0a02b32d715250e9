import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeInspection
@testable import WormholeSystem

/// A row that no primitive has: `refused/`, with notes as in `outcomes/`, posts, and what is being written.
@Suite("A part that is planted in the description", .blocking)
struct PlantedPartTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer
  private let batch = EntryFile(order: 1, sender: "a", count: 1, bytes: 3)

  private var place: String { directory.path + "/queues/q" }
  private var note: String { "refused/\(batch.text).0" }

  init() throws {
    directory = try TemporaryDirectory()
    container = try SharedContainer(path: directory.path)
    let refused = ContainerPart(
      "refused",
      parts: [
        ContainerPart(each: .outcome) { OutcomeFile.id($0.text) != nil },
        ContainerPart(each: .post, "rung-", copied: .nothing),
        ContainerPart(each: .unfinished, "torn-", copied: .nothing),
      ])
    container.root.memory(PlantedParts.self).rows.withLock { $0[.queue] = [refused] }
    try container.queue("q").sender("a").enqueue(1)
    try makeDirectory(place + "/refused")
  }

  /// The same container, for those who do not know the row.
  private func stranger() throws -> SharedContainer { try SharedContainer(path: directory.path) }

  private func write(_ path: String, _ bytes: [UInt8] = []) throws {
    try FileDescriptor.open(place + "/" + path, [.writeOnly, .create]).writeAll(bytes)
  }

  private func isThere(_ path: String) throws -> Bool {
    try exists(place + "/" + path, at: Directory.current)
  }

  @Test("is counted by the report, which otherwise calls it foreign")
  func report() throws {
    try write(note)
    try write("refused/torn-1")
    let report = try container.report()
    #expect(report.names.queues.first?.outcomes == 1)
    #expect(report.leftovers.map(\.path) == [place + "/refused/torn-1"])
    #expect(report.foreignEntries.isEmpty)
    #expect(try stranger().report().foreignEntries.map(\.path) == [place + "/refused"])
  }

  @Test("is swept of what a dead process left, and removed with the name, which otherwise stays")
  func sweep() throws {
    try write("refused/torn-1")
    #expect(try container.sweep().removed == [place + "/refused/torn-1"])
    #expect(try !isThere("refused/torn-1"))
    let consumer = try container.queue("q").consume()
    try #require(try consumer.next(until: .now)).acknowledge()
    consumer.close()
    _ = try stranger().sweep()
    #expect(try isThere("refused"))
    let swept = try container.sweep()
    #expect(swept.names.contains(place) && swept.failures.isEmpty)
    #expect(try !isThere("."))
  }

  @Test("is watched by the monitor")
  func monitor() throws {
    let heard = Heard<String>()
    let monitor = try container.monitor { heard.add("\($0.name) \($0.change.rawValue)") }
    let deaf = Heard<String>()
    let other = try stranger().monitor { deaf.add("\($0.name) \($0.change.rawValue)") }
    try write("refused/rung-1")
    try eventually("it reports the post") { heard.all.contains("q posted") }
    try container.value("v").replace(with: 1)
    try eventually("the other one has looked since") { deaf.all.contains("v changed") }
    #expect(!deaf.all.contains("q posted"))
    withExtendedLifetime((monitor, other)) {}
  }

  @Test("is taken along by a copy, but for what a dead process left")
  func copy() throws {
    try write(note, [1])
    try write("refused/torn-1")
    let other = try TemporaryDirectory()
    for (name, source) in [("known", container), ("foreign", try stranger())] {
      let path = other.path + "/" + name
      _ = try ContainerCopy(of: source).run(to: path, until: .now + .seconds(30))
      let isKnown = name == "known"
      #expect(try exists(path + "/queues/q/" + note, at: Directory.current) == isKnown)
      #expect(try !exists(path + "/queues/q/refused/torn-1", at: Directory.current))
    }
  }
}
