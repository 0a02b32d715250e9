import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// The code of `Clients` is compiled in the mode of Swift 5, and runs in processes of a user of its own.
@Suite("Code written for notify(3)", .blocking)
struct NotifyTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func process() throws -> Participant {
    try Participant(directory.path, environment: ["XDG_DATA_HOME=\(directory.path)"])
  }

  @Test("hears posts of other processes and its own, under each token")
  func posts() throws {
    let (one, other) = (try process(), try process())
    #expect(try one.notify("dispatch a lights") == "0")
    #expect(try one.notify("dispatch b lights") == "0")
    #expect(try other.notify("dispatch c lights") == "0")
    #expect(try other.notify("post lights") == "0")
    try one.waits(until: ["a", "b"])
    try other.waits(until: ["c"])
    #expect(try one.notify("post lights") == "0")
    try one.waits(until: ["a", "a", "b", "b"])
    try other.waits(until: ["c", "c"])
    #expect(try one.notify("post nobody") == "0")
    #expect(try one.notify("post -") == "1")
  }

  @Test("hears nothing while the container is removed, and makes it again by a post")
  func removed() throws {
    let (one, other) = (try process(), try process())
    #expect(try one.notify("dispatch a lights") == "0")
    #expect(try other.notify("post lights") == "0")
    try one.waits(until: ["a"])
    let groups = directory.path + "/app-groups"
    let group = try #require(
      try FileDescriptor.open(groups, [.readOnly, .directory]).entries().first)
    let path = groups + "/" + group.name.text
    for count in 2...4 {
      #expect(try ChildProcess("rm", ["-r", path]).wait(until: soon) == .exited(0))
      // The poster of the last round is the one that is called.
      #expect(try (count == 4 ? one : other).notify("post lights") == "0")
      try one.waits(until: Array(repeating: "a", count: count))
    }
  }

  @Test("checks: true at first, then once after posts, however many")
  func checks() throws {
    let (one, other) = (try process(), try process())
    #expect(try one.notify("check a lights") == "0")
    #expect(try one.notify("check b lights") == "0")
    #expect(try one.notify("posted a") == "1")
    #expect(try one.notify("posted a") == "0")
    for _ in 0..<3 { #expect(try other.notify("post lights") == "0") }
    #expect(try one.notify("posted a") == "1")
    #expect(try one.notify("posted a") == "0")
    #expect(try one.notify("posted b") == "1")
    #expect(try other.notify("post Lights") == "0")
    #expect(try one.notify("posted a") == "0")
  }

  @Test("shares a state of 64 bits for each name, and setting it posts nothing")
  func states() throws {
    let (one, other) = (try process(), try process())
    #expect(try one.notify("check a lights") == "0")
    #expect(try other.notify("check b lights") == "0")
    #expect(try other.notify("check c doors") == "0")
    #expect(try one.notify("state a") == "0")
    #expect(try one.notify("posted a") == "1")
    #expect(try other.notify("set b 18446744073709551615") == "0")
    #expect(try one.notify("state a") == "18446744073709551615")
    #expect(try other.notify("state c") == "0")
    #expect(try one.notify("posted a") == "0")
  }

  @Test("is held back as often as it is suspended, and then hears of posts once")
  func suspensions() throws {
    let (one, other) = (try process(), try process())
    for word in ["a", "b"] { #expect(try one.notify("dispatch \(word) lights") == "0") }
    for _ in 0..<2 { #expect(try one.notify("suspend a") == "0") }
    for count in 1...3 {
      #expect(try other.notify("post lights") == "0")
      try one.waits(until: Array(repeating: "b", count: count))
    }
    #expect(try one.notify("resume a") == "0")
    #expect(try other.notify("post lights") == "0")
    try one.waits(until: ["b", "b", "b", "b"])
    #expect(try one.notify("resume a") == "0")
    try one.waits(until: ["a", "b", "b", "b", "b"])
    #expect(try other.notify("post lights") == "0")
    try one.waits(until: ["a", "a", "b", "b", "b", "b", "b"])
  }

  @Test("hears nothing after it has cancelled, even in the handler; no token returns")
  func cancelling() throws {
    let (one, other) = (try process(), try process())
    for word in ["a", "once", "b"] {
      #expect(try one.notify("dispatch \(word) lights") == "0")
    }
    #expect(try one.notify("check d lights") == "0")
    #expect(try one.notify("numbers -") == "4 4 4")
    #expect(try one.notify("cancel a") == "0")
    #expect(try one.notify("cancel a") == "2")
    #expect(try other.notify("post lights") == "0")
    try one.waits(until: ["b", "once"])
    #expect(try other.notify("post lights") == "0")
    try one.waits(until: ["b", "b", "once"])
    #expect(try one.notify("numbers -") == "4 4 2")
    for call in ["posted a", "state a"] { #expect(try one.notify(call) == "status 2") }
    for call in ["suspend a", "resume a", "set a 1"] { #expect(try one.notify(call) == "2") }
    #expect(try one.notify("check e lights") == "0")
    #expect(try one.notify("numbers -") == "5 5 3")
  }

  @Test("gets signals, and finds by a check which name was posted")
  func signals() throws {
    let (one, other) = (try process(), try process())
    #expect(try one.notify("signal a lights 10") == "0")
    #expect(try one.notify("signal b doors 10") == "0")
    for word in ["a", "b"] { #expect(try one.notify("posted \(word)") == "1") }
    #expect(try other.notify("post doors") == "0")
    try eventually("the signal arrives") { try one.notify("signals -") == "1" }
    #expect(try one.notify("posted a") == "0")
    #expect(try one.notify("posted b") == "1")
  }

  @Test("reads tokens of four bytes in the order of the network, of several names in one pipe")
  func descriptors() throws {
    let (one, other) = (try process(), try process())
    #expect(try one.notify("descriptor a lights") == "0")
    #expect(try one.notify("descriptor b doors a") == "0")
    #expect(try one.notify("descriptor c lights") == "0")
    #expect(try other.notify("post doors") == "0")
    #expect(try one.notify("read a") == "b")
    #expect(try other.notify("post lights") == "0")
    #expect(try one.notify("read b") == "a")
    #expect(try one.notify("read c") == "c")
    #expect(try one.notify("cancel a") == "0")
    #expect(try other.notify("post doors") == "0")
    #expect(try one.notify("read a") == "b")
    #expect(try one.notify("cancel b") == "0")
    #expect(try one.notify("read b") == "closed")
    #expect(try one.notify("descriptor d lights b") == "4")
    #expect(try other.notify("post lights") == "0")
    #expect(try one.notify("read c") == "c")
  }

  @Test("gets the statuses of what it lacks")
  func refusals() throws {
    #expect(try process().notify("refusals -") == "1 10 10 5 10 4 2 10 10 -1")
  }

  @Test("has a center of each user, and fails where there can be none")
  func users() throws {
    let elsewhere = try TemporaryDirectory()
    let (one, other) = (
      try process(),
      try Participant(directory.path, environment: ["XDG_DATA_HOME=\(elsewhere.path)"])
    )
    for process in [one, other] {
      #expect(try process.notify("check a lights") == "0")
      #expect(try process.notify("posted a") == "1")
    }
    #expect(try one.notify("post lights") == "0")
    #expect(try one.notify("posted a") == "1")
    #expect(try other.notify("posted a") == "0")
    let nobody = try Participant(directory.path, environment: ["XDG_DATA_HOME=/proc"])
    #expect(try nobody.notify("check a lights") == "1000000")
    #expect(try nobody.notify("numbers -") == "1 1 0")
  }
}

extension Participant {
  /// Executes a command of `NotifyVerbs`.
  func notify(_ command: String) throws -> String { try ask("notify-" + command) }

  /// Waits until these words were called, in any order, and no other.
  fileprivate func waits(until words: [String]) throws {
    try eventually("\(words) are called") {
      try notify("heard -").split(separator: " ").map(String.init).sorted() == words
    }
  }
}
