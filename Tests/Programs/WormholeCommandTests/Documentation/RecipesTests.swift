import Foundation
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// The page of recipes: one program of all its lines, in several processes.
@Suite("The recipes", .blocking)
final class RecipesTests: Sendable {
  private static let page = "Sources/Core/Wormhole/Wormhole.docc/Recipes.md"

  /// Calls the recipe that its second word names.
  private static let main = """

    @main struct Recipes {
      static func main() async throws {
        let container = try SharedContainer(url: URL(filePath: CommandLine.arguments[1]))
        let name = CommandLine.arguments[3]
        switch CommandLine.arguments[2] {
        case "clean": try await clean(container, as: name)
        case "limit": try await count("allowed", try await callOften(container), in: container)
        case "serve":
          try await serve(container) { configuration in
            try await container.value("applied").replace(with: .string(configuration.greeting))
          }
        case "add":
          let first = Int(name) ?? 0
          try await withThrowingTaskGroup { group in
            for number in first..<first + 40 {
              group.addTask { try await add(PrintJob(film: "\\(number)", copies: 2), to: container) }
            }
            try await group.waitForAll()
          }
        case "work":
          try await work(in: container) { job, isAgain in
            try await Task.sleep(for: .milliseconds(5))
            try await count(isAgain ? "again" : "done", 1, in: container)
            try await count(job.film, job.copies, in: container)
          }
        default:
          let content = try await cached("sum", in: container, for: .seconds(3_600)) {
            try await count("computed", 1, in: container)
            return 42
          }
          try await count("answers", content, in: container)
        }
      }

      static func count(_ name: String, _ number: Int, in container: SharedContainer) async throws {
        try await container.value(name, as: Int.self).update { $0 = ($0 ?? 0) + number }
      }
    }
    """

  private let directory: TemporaryDirectory
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    let blocks = try Readme.blocks(ofPage: Self.page).filter { $0.language == "swift" }
    #expect(blocks.count == 5)
    for block in blocks { #expect(block.text.split(separator: "\n").count < 60, "\(block)") }
    let outcome = try ReaderPackage(directory: directory.path)
      .build(blocks.map(\.text).joined(separator: "\n") + Self.main, as: "recipes")
    try #require(outcome.isBuilt, "\(outcome.said)")
  }

  private func start(_ recipe: String, _ name: String = "") throws -> LineProcess {
    try LineProcess(directory.path + "/recipes", [container.url.path, recipe, name])
  }

  private func finish(_ processes: [LineProcess]) throws {
    for process in processes { #expect(try process.wait(until: soon) == .exited(0)) }
  }

  @Test("keep what they promise while processes are stopped and killed")
  func recipes() throws {
    try leaderElection()
    try rateLimit()
    try configuration()
    try jobRunner()
    try cache()
  }

  private func leaderElection() throws {
    let value = container.value("cleaned-by")
    func leads(_ name: String) throws {
      try eventually("\(name) leads") { try value.read() == .string(name) }
    }
    let first = try start("clean", "first")
    try leads("first")
    let second = try start("clean", "second")
    try first.send(.stop)
    try leads("second")
    try first.send(.continue)
    try second.end()
    try leads("first")
    try first.end()
  }

  private func rateLimit() throws {
    try finish((0..<3).map { _ in try start("limit") })
    #expect(try container.value("allowed").read() == 10)
  }

  private func configuration() throws {
    let service = try start("serve")
    let applied = container.value("applied")
    try eventually("the standard one is applied") { try applied.read() == "hello" }
    let configuration = container.value("configuration")
    try configuration.replace(with: ["port": 80, "greeting": "good evening"])
    try eventually("it is applied") { try applied.read() == "good evening" }
    try configuration.replace(with: ["port": "a word"])
    try eventually("it is reported") { try container.value("configuration-error").read() != nil }
    #expect(try applied.read() == "good evening")
    try configuration.replace(with: ["port": 80, "greeting": "good night"])
    try eventually("the next one is applied") { try applied.read() == "good night" }
    try service.end()
  }

  /// Bursts of jobs, while workers are stopped, continued, killed and started again.
  private func jobRunner() throws {
    var workers = try (0..<3).map { _ in try start("work") }
    for burst in 0..<4 {
      let sender = try start("add", "\(burst * 40)")
      let hand = container.value("done")
      let before = try hand.read()
      try eventually("a job of this burst is done") { try hand.read() != before }
      try workers[0].send(.stop)
      try workers[0].waitUntilStopped(until: soon)
      try workers[1].send(.kill)
      try finish([sender])
      workers[1] = try start("work")
      try workers[0].send(.continue)
    }
    let jobs = container.queue("print")
    try eventually("all jobs are done") { try !jobs.hasEntries() }
    // None is lost, and one that was done more than once was marked.
    let counts = try (0..<160).map { try container.value("\($0)", as: Int.self).read() ?? 0 }
    #expect(counts.allSatisfy { $0 >= 2 && $0.isMultiple(of: 2) })
    let repetitions = counts.reduce(0, +) / 2 - counts.count
    #expect(try repetitions <= container.value("again", as: Int.self).read() ?? 0)
    #expect(try jobs.failures().isEmpty)
    // No worker has ended but the killed ones.
    for worker in workers {
      #expect(try worker.termination(until: .now) == nil)
      try worker.end()
    }
  }

  private func cache() throws {
    try finish((0..<4).map { _ in try start("cached") })
    #expect(try container.value("computed").read() == 1)
    #expect(try container.value("answers").read() == 168)
  }
}
