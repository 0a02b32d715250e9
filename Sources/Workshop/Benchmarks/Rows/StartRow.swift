import SystemCalls

/// The time from the start to the end of `wormhole send`, against the smallest possible program.
enum StartRow {
  static func measure(_ bench: Bench) throws -> [Row] {
    let own = try Program.executablePath()
    let program = own[..<(own.lastIndex(of: "/") ?? own.startIndex)] + "/wormhole"
    let container = try bench.directory("start")
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    func run(_ program: String, _ arguments: [String]) throws {
      let child = try ChildProcess(program, arguments, input: null.rawValue, output: null.rawValue)
      let end = try child.wait(until: .now + .seconds(30))
      guard end == .exited(0) else {
        throw Failure(
          description: "\(program): \(end.map { "\($0)" } ?? "does not end"); build it first with "
            + "swift build -c release --product wormhole")
      }
    }
    let results = try alternate(
      rounds: bench.rounds, runs: bench.scaled(20),
      [
        { try run(String(program), ["--container", container, "send", "greeting", "\"hello\""]) },
        { try run("/bin/true", []) },
      ])
    return [
      Row(
        "wormhole send, start to end / true", .milliseconds, ours: results[0], floor: results[1],
        expected: .oursAtMost(9))
    ]
  }
}
