import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

extension CommandDescription {
  static let bench = CommandDescription(
    name: "bench",
    abstract: "Measure this machine, each figure beside its floor.",
    discussion: """
      The floor of a figure is the same work with the necessary system calls only, measured in turns \
      with it: what no library can be faster than. The ratio is what to compare; times on a busy machine \
      say little. The last two numbers of a ratio are its tenth and ninetieth percentile.

      It makes a directory of its own, which it removes at the end. By default it lies where the \
      containers of groups are, because the file system decides most of the figures.
      """,
    arguments: [
      .optional("directory", .directory, help: "Where the directory is made."),
      .flag("quick", help: "Fewer rounds: a few seconds in place of a minute."),
      .json,
    ],
    needsContainer: false
  ) { arguments, environment in
    let bench = try makeBench(
      under: arguments.text("directory") ?? homeOfGroups(), isQuick: arguments.has("quick"))
    let interruption = try Interruption()
    defer { remove(bench, environment) }
    var rows: [Row] = []
    for (name, measure) in measurements {
      environment.showProgress("measuring \(name) …")
      defer { environment.showProgress(nil) }
      rows += try environment.withoutTimeLimit { try measure(bench) }
      try interruption.endIfInterrupted()
    }
    if arguments.has("json") {
      for row in rows { try environment.print(json: row.propertyList) }
    } else {
      #if DEBUG
        environment.report("this is a debug build, which is slower than a release build")
      #endif
      try environment.print(line: "in \(bench.path) (\(try bench.fileSystemName()))")
      for line in rows.table(withExpectations: false) { try environment.print(line: line) }
    }
  }
}

private let measurements: [(name: String, measure: @Sendable (Bench) throws -> [Row])] = [
  ("publication", ValueRows.measure),
  ("reading", ValueRows.measureReading),
  ("updates", UpdateRows.measureAlone),
  ("listening", { [try ListenRow.measure($0)] }),
  ("queues", { try [QueueRows.sending($0)] + QueueRows.consuming($0) }),
  ("durability", ValueRows.measureDurable),
]

private func makeBench(under directory: String, isQuick: Bool) throws -> Bench {
  do {
    return try Bench(under: directory, name: ".wormhole-bench", isQuick: isQuick)
  } catch {
    throw CommandError(cannot: "make a directory in \(directory)", because: error)
  }
}

/// The directory of all groups' containers, or the one in which it would be made.
private func homeOfGroups() throws -> String {
  var path = try SharedContainer.location(ofGroup: "group.any")
  repeat { path = parentDirectory(of: path) } while try ifPresent(fileStatus(path)) == nil
  return path
}

private func remove(_ bench: Bench, _ environment: CommandEnvironment) {
  do { try bench.remove() } catch {
    environment.report("cannot remove \(bench.path): \(error); remove it by hand")
  }
}

extension Row {
  /// The row for machines; times in nanoseconds.
  fileprivate var propertyList: PropertyListValue {
    .object([
      "name": name, "nanoseconds": ours.map { Int64($0 * unit.scale) },
      "floorNanoseconds": floor.map { Int64($0 * unit.scale) }, "ratio": ratio,
      "ratioLow": ratioLow, "ratioHigh": ratioHigh,
    ])
  }
}
