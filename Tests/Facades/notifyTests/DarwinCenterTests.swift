import Testing
import WormholeTestSupport

@Suite("Code written for the Darwin center", .blocking, .bothEngines)
struct DarwinCenterTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func process() throws -> Participant {
    try Participant("group:com.example.any", environment: directory.groups)
  }

  @Test("hears posts of other processes and its own in the main run loop, until it is removed")
  func posts() throws {
    let (one, other) = (try process(), try process())
    for process in [one, other] {
      #expect(try process.notify("center observe a") == "done")
      #expect(try process.notify("center observe") == "done")
    }
    #expect(try one.notify("center post a") == "done")
    #expect(try one.notify("center heard 1") == "a")
    #expect(try other.notify("center heard 1") == "a")
    #expect(try other.notify("center post") == "done")
    #expect(try one.notify("center heard 2") == "a lights")
    #expect(try other.notify("center heard 2") == "a lights")

    #expect(try one.notify("center stop a") == "done")
    #expect(try other.notify("center post a") == "done")
    #expect(try other.notify("center heard 3") == "a lights a")
    #expect(try other.notify("center post") == "done")
    #expect(try one.notify("center heard 3") == "a lights lights")
    #expect(try one.notify("center stop") == "done")
    #expect(try other.notify("center heard 4") == "a lights a lights")
    #expect(try one.notify("center post a") == "done")
    #expect(try other.notify("center heard 5") == "a lights a lights a")
    #expect(try one.notify("center heard 3") == "a lights lights")
  }

  @Test("is one center with notify(3)")
  func functions() throws {
    let (one, other) = (try process(), try process())
    #expect(try one.notify("center observe a") == "done")
    #expect(try other.notify("check a a") == "0")
    #expect(try other.notify("posted a") == "1")
    #expect(try other.notify("post a") == "0")
    #expect(try one.notify("center heard 1") == "a")
    #expect(try one.notify("center post a") == "done")
    #expect(try other.notify("posted a") == "1")
  }
}
