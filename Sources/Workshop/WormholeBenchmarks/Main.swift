import FoundationEssentials
import WormholeEtcd
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

@main
struct Main {
  static func main() {
    prepareSignals()
    EtcdEngine.register()
    do {
      let arguments = try argumentTexts()
      if arguments.first == "worker" {
        try Worker.run(Array(arguments.dropFirst()))
      } else {
        try run(Options(arguments))
      }
    } catch {
      Terminal.say("benchmarks: \(error)")
      if error is Misuse { Terminal.say(Options.usage) }
      Program.exit(error is Misuse ? 64 : 1)
    }
  }

  /// Writes what was asked for; an error ends the program, which would otherwise report half a result.
  private static func write(_ text: String) throws { try Program.write(text + "\n", to: 1) }

  private static func run(_ options: Options) throws {
    let bench = try Bench(under: options.directory, isQuick: options.isQuick)
    defer {
      do { try bench.remove() } catch { Terminal.say("cannot remove \(bench.path): \(error)") }
    }
    if !options.asJSON {
      Terminal.print(
        "in \(bench.path) (\(try bench.fileSystemName()); --directory /dev/shm measures on tmpfs, "
          + "if there is one)")
    }
    var rows: [Row] = []
    for (name, measure) in groups where options.only.isEmpty || options.only.contains(name) {
      Terminal.progress("measuring \(name) …")
      do {
        rows += try measure(bench)
      } catch {
        rows.append(Row(name, ours: [], notes: ["not measured: \(error)"]))
      }
    }
    Terminal.progress("")
    if options.asJSON {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      let report = Report(fileSystem: try bench.fileSystemName(), rows: rows)
      try write(String(decoding: try encoder.encode(report), as: UTF8.self))
    } else {
      for line in rows.table() { try write(line) }
    }
  }
}

/// A run's rows, for machines.
struct Report: Encodable {
  let fileSystem: String
  let rows: [Row]
}

/// Rows that are measured together, with their name for `--only`.
private let groups: [(name: String, measure: @Sendable (Bench) throws -> [Row])] = [
  ("publish", ValueRows.measure),
  ("update", UpdateRows.measureAlone),
  ("update-8", UpdateRows.measureContended),
  ("read", ValueRows.measureReading),
  ("codec", CodecRows.measure),
  ("count", CountRows.measure),
  ("defaults", DefaultsRows.measure),
  ("latency", LatencyRows.measure),
  ("idle", ObserverRows.measureIdle),
  ("memory", ObserverRows.measureMemory),
  ("names", ScaleRows.measureNames),
  ("scale", ScaleRows.measure),
  ("start", StartRow.measure),
  ("durable", ValueRows.measureDurable),
  ("lone", ValueRows.measureLone),
  ("notify", PresenceRows.measureNotification),
  ("presence", PresenceRows.measure),
  ("queue", QueueRows.measure),
  ("queue-rivals", QueueRivalRows.measure),
  ("queue-depth", QueueDepthRows.measure),
  ("log", LogRows.measure),
  ("request", RequestRows.measure),
  ("files", FileRows.measure),
  ("coordination", CoordinationRows.measure),
  ("etcd", EtcdRows.measure),
]

private struct Options {
  /// The directory of the measurement; its file system decides most of the figures.
  var directory: String
  /// The rows to measure; empty means all.
  var only: [String] = []
  var asJSON = false
  /// Fewer rounds and names, to see that everything works.
  var isQuick = false

  static let usage = """
    usage: benchmarks [--directory DIR] [--only NAME,…] [--json] [--quick]
    names: \(groups.map(\.name).joined(separator: ", "))
    Each row is measured alternately with its floor, in the same directory. --directory /dev/shm
    measures on tmpfs.
    """

  init(_ arguments: [String]) throws {
    // The build directory is on a real disk, /tmp possibly not.
    let isBuilt = try ifPresent(fileStatus(".build"))?.kind == .directory
    directory = isBuilt ? ".build" : Program.environment("TMPDIR") ?? "/tmp"
    var list = ArgumentList(arguments)
    while let argument = list.next() {
      switch argument {
      case "--json": asJSON = true
      case "--quick": isQuick = true
      case "--directory": directory = try list.value(of: argument, "a directory") { $0 }
      case "--only":
        only = try list.value(of: argument, "names of rows") { text in
          let names = text.split(separator: ",").map(String.init)
          return names.allSatisfy(groups.map(\.name).contains) ? names : nil
        }
      case "--help", "-h":
        print(Self.usage)
        Program.exit(0)
      default: throw Misuse("unknown argument \"\(argument)\"")
      }
    }
  }
}
