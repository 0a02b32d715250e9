import Testing
import WormholeTestSupport

/// A call that may block has two forms with one name. At the top level of a file the compiler used
/// to choose the blocking one even if it was awaited, with only a warning that nothing is.
@Suite("A call that may block", .blocking)
struct AwaitTests {
  private static let before = """
    import Foundation
    import GroupDefaults
    import Wormhole
    import WormholeFiles
    import WormholePeers
    import WormholePropertyLists

    let group = "group.com.example.cinema"
    let soon: ContinuousClock.Instant = .now + .seconds(1)
    let url = URL(filePath: "file")

    """

  /// The objects of the calls.
  private static let objects = """
    let container = try SharedContainer(group: group)
    let value = container.value("v")
    let queue = container.queue("q")
    let presence = container.presence("p")
    let channel = Channel<Int>("c", in: container)
    let defaults = try GroupDefaults(group: group)
    let coordinator = FileCoordinator()
    let session = try PeerSession("s", in: container)

    """

  private static let calls = [
    "_ = try await value.read()", "_ = try await value.snapshot()",
    "try await value.replace(with: 1)", "try await value.update { $0 = 1 }",
    "try await value.remove()", "_ = try await queue.sender(\"s\").enqueue(1)",
    "_ = try await queue.consume()", "_ = try await presence.enterExclusively()",
    "try await channel.publish(5)", "_ = try await channel.value.read()",
    "try await channel.update { $0 = 1 }", "try await channel.value.remove()",
    "_ = try await defaults.read(forKey: \"k\")", "try await defaults.write(1, forKey: \"k\")",
    "try await defaults.update(forKey: \"k\") { $0 = 1 }",
    "try await defaults.remove(forKey: \"k\")",
    "try await coordinator.coordinate(readingItemAt: url) { _ in }",
    "try await coordinator.coordinate(writingItemAt: url) { _ in }",
    "try await session.activate()",
    "_ = try await session.request(1, to: \"t\", until: .now + .seconds(1))",
    "try await session.send(1, to: \"t\", until: .now + .seconds(1))",
    "_ = try await session.enqueue(1, to: \"t\")", "_ = try await session.receiveMessages()",
    "_ = try await session.receiveFiles()", "try await session.setContext(1, for: \"t\")",
  ]

  private func check(_ source: String) throws -> ReaderPackage.Outcome {
    let directory = try TemporaryDirectory()
    return try ReaderPackage(directory: directory.path)
      .build(Self.before + source, as: "program", isWhole: false)
  }

  private var lines: String { (Self.calls.map { "  " + $0 }).joined(separator: "\n") }

  @Test("is awaited in an async function and in an async main, without a warning")
  func functions() throws {
    for head in [
      "func f() async throws {", "@main struct Main { static func main() async throws {",
    ] {
      let tail = head.contains("@main") ? "}}" : "}"
      let outcome = try check([head, Self.objects, lines, tail].joined(separator: "\n"))
      #expect(outcome.isBuilt, "\(outcome.said)")
    }
  }

  @Test("blocks without await: at the top level, and in a function that is not async")
  func blocking() throws {
    let lines = Self.calls.map { $0.replacing("await ", with: "") }.joined(separator: "\n")
    #expect(try check(Self.objects + lines).isBuilt)
    #expect(
      try check(["func f() throws {", Self.objects, lines, "}"].joined(separator: "\n")).isBuilt)
  }

  @Test("is refused at the top level if it is awaited there, and in an async function if it is not")
  func refusals() throws {
    let topLevel = try check(Self.objects + Self.calls.joined(separator: "\n"))
    let refused = topLevel.said.split(separator: "\n").filter {
      $0.contains(" error: ") && $0.contains("is unavailable from asynchronous contexts; it blocks")
        && !$0.contains("`-")
    }
    #expect(Set(refused).count == Self.calls.count, "\(topLevel.said)")
  }
}
