import WormholeSystem
import WormholeWorkshop

/// The time from the start to the end of `wormhole send`, built as the README installs it, against the
/// smallest possible program.
enum StartRow {
  private static let build = "swift build -c release --product wormhole"
  private static let staticBuild =
    build + " --scratch-path .build/static -Xswiftc -static-executable -Xlinker -s"

  /// The program of that build; this one is `.build/PLATFORM/release/benchmarks`.
  ///
  /// - Parameter loadsLibraries: Whether to use the build beside this one: a static program cannot
  ///   load the library that etcd needs.
  private static func program(loadsLibraries: Bool) throws(Errno) -> String {
    let parts = try Program.executablePath().split(separator: "/")
    let (levels, name) = loadsLibraries ? (1, "wormhole") : (3, "static/release/wormhole")
    return "/" + parts.dropLast(levels).joined(separator: "/") + "/" + name
  }

  static func measure(_ bench: Bench) throws -> [Row] {
    [try measure(bench, sendingTo: try bench.directory("start"), expected: .oursAtMost(3))]
  }

  /// - Parameter state: The place for this machine's directory of a container on etcd.
  static func measure(
    _ bench: Bench, sendingTo container: String, state: String? = nil,
    expected expectation: Row.Expectation = .oursAtMost(12)
  ) throws -> Row {
    let program = try program(loadsLibraries: state != nil)
    let build = state == nil ? staticBuild : build
    let environment = Program.environment(with: state.map { ["XDG_STATE_HOME=" + $0] } ?? [])
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    func run(_ program: String, _ arguments: [String]) throws {
      let child = try ChildProcess(
        program, arguments, environment: environment, input: null.rawValue, output: null.rawValue)
      let end = try child.wait(until: .now + .seconds(30))
      guard end == .exited(0) else {
        throw Failure(
          description: "\(program): \(end.map { "\($0)" } ?? "does not end"); build it first with "
            + build)
      }
    }
    let results = try alternate(
      rounds: bench.rounds, runs: bench.scaled(20),
      [
        { try run(program, ["--container", container, "send", "greeting", "\"hello\""]) },
        { try run("/bin/true", []) },
      ])
    return Row(
      "wormhole send\(state == nil ? "" : " on etcd"), start to end / true", .milliseconds,
      ours: results[0], floor: results[1], expected: expectation,
      notes: ["built by: \(build)"])
  }
}
