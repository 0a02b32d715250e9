import WormholeSystem
import WormholeToolkit
import WormholeWorkshop

/// The time from the start to the end of `wormhole send`, built as the README installs it, against the
/// smallest possible program.
enum StartRow {
  private static let build = "swift build -c release --product wormhole"
  private static let staticBuild =
    build + " --scratch-path .build/static -Xswiftc -static-executable -Xlinker -s"

  /// The program from that build; this one is `.build/PLATFORM/release/benchmarks`.
  ///
  /// - Parameter loadsLibraries: Whether to use the build beside this one: a static program cannot
  ///   load the library that etcd needs.
  static func program(loadsLibraries: Bool) throws(Errno) -> String {
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
    let arguments = ["--container", container, "send", "greeting", "\"hello\""]
    let results: [[Double]]
    do {
      results = try alternate(
        rounds: bench.rounds, runs: bench.scaled(20),
        [
          { try runQuietly(program, arguments, environment: environment) },
          { try runQuietly("/bin/true", [], environment: environment) },
        ])
    } catch {
      throw Failure(description: "\(program): \(error); build it first with \(build)")
    }
    return Row(
      "wormhole send\(state == nil ? "" : " on etcd"), start to end / true", .milliseconds,
      ours: results[0], floor: results[1], expected: expectation,
      notes: ["built by: \(build)"])
  }
}
