import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// The implementation in Python beside this one, on one container: Fixtures/Python/wormhole.py.
///
/// `Tests/Python/torture` makes 100,000 operations; here is a sample of it.
@Suite(
  "Processes in Python beside ours", .blocking,
  .enabled("python3 is not installed, and nothing else implements the format") {
    // On the build server a missing Python is a failure, not a reason to skip.
    try Program.environment("CI") != nil
      || Children.run("sh", ["-c", "command -v python3"]).output != ""
  })
struct PythonTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func swift() throws -> Participant { try Participant(directory.path) }

  private func python() throws -> Participant {
    try Participant(
      program: "python3", [Checkout.path("Tests/Python/participant.py"), directory.path])
  }

  /// Runs the torture; TORTURE_SEED repeats the choices of an earlier run, whose output names it.
  private func torture(
    _ operations: Int, _ more: [String] = []
  ) throws -> (end: Termination?, output: String) {
    let seed = Program.environment("TORTURE_SEED") ?? "\(UInt32.random(in: 0...999_999))"
    return try Children.run(
      "python3",
      [
        Checkout.path("Tests/Python/torture"), "--operations", "\(operations)", "--seed", seed,
        "--programs", BuiltProgram.asBuilt(""), "--directory", directory.path,
      ] + more)
  }

  @Test("lose nothing and block nobody, in a sample of the torture")
  func sample() throws {
    let (end, output) = try torture(3_000)
    #expect(end == .exited(0), "\(output)")
    #expect(output.contains("\n0 violations\n"), "\(output)")
  }

  @Test("are found out when they leave a rule out", arguments: ["rule2", "marks"])
  func detection(rule: String) throws {
    let (end, output) = try torture(300, ["--break", rule])
    #expect(end == .exited(1), "\(output)")
    #expect(output.contains("  violation: "), "\(output)")
  }

  @Test("read each other's values")
  func values() throws {
    let (ours, theirs) = (try swift(), try python())
    #expect(try theirs.ask("read seats") == "nil")
    for number in 1...20 {
      #expect(try [ours, theirs][number % 2].ask("add seats 1") == "done")
      #expect(try ours.ask("read seats") == "\(number)")
      #expect(try theirs.ask("read seats") == "\(number)")
    }
    #expect(try theirs.ask("remove seats") == "done")
    #expect(try ours.ask("read seats") == "nil")
    #expect(try ours.ask("expiring seats 7 60000") == "done")
    #expect(try theirs.ask("read seats") == "7")
    #expect(try ours.ask("expiring seats 8 1") == "done")
    pauseThread(.milliseconds(5))
    #expect(try theirs.ask("read seats") == "nil")
    #expect(try theirs.ask("add seats 1") == "done")
    #expect(try ours.ask("read seats") == "1")
  }

  // holder       the other one
  // holding …
  // stopped
  //              waits for the grace, takes the lease over, adds 1
  // continued
  // its publication fails; holding again, with the newer value
  @Test("take a stopped holder's lease over, in both directions", arguments: [true, false])
  func takeover(holderIsPython: Bool) throws {
    let holder = try holderIsPython ? python() : swift()
    let other = try holderIsPython ? swift() : python()
    #expect(try holder.ask("hold seats 100") == "holding")
    try holder.send(.stop)
    try holder.waitUntilStopped()
    #expect(try other.ask("add seats 1") == "done")
    try holder.send(.continue)
    #expect(try holder.ask("go on") == "holding")
    #expect(try holder.ask("go on") == "done")
    #expect(try other.ask("read seats") == "101")
  }

  @Test("wait for no killed holder, in both directions", arguments: [true, false])
  func killed(holderIsPython: Bool) throws {
    let holder = try holderIsPython ? python() : swift()
    let other = try holderIsPython ? swift() : python()
    #expect(try holder.ask("hold seats 100") == "holding")
    try holder.end()
    #expect(try other.ask("add seats 1") == "done")
    #expect(try other.ask("read seats") == "1")
  }

  #if DEBUG
    @Test("settle a change of two values whose writer was killed anywhere")
    func transactions() throws {
      let theirs = try python()
      var number = 0
      var isDone = false
      var found: Set<Int> = []
      for place in 1..<400 where !isDone {
        let ours = try swift()
        #expect(try ours.ask("set A \(number)") == "done")
        #expect(try ours.ask("set B \(number)") == "done")
        isDone = try !ours.dies(of: "die \(place) together A,B 1")
        let value = try #require(Int(theirs.ask("read A")))
        #expect(try theirs.ask("read B") == "\(value)", "killed before call \(place)")
        #expect(value == number || value == number + 1, "killed before call \(place)")
        found.insert(value - number)
        for key in ["A", "B"] { #expect(try theirs.ask("add \(key) 0") == "done") }
        let next = try swift()
        for key in ["A", "B"] { #expect(try next.ask("read \(key)") == "\(value)") }
        number = value
      }
      #expect(isDone && found == [0, 1])
    }
  #endif
}
