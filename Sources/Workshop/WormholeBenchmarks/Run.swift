import WormholeSystem
import WormholeWorkshop

/// One run of the program: all requested rows, in order.
struct Run {
  let options: Options
  let bench: Bench

  init(_ options: Options) throws {
    self.options = options
    bench = try Bench(under: options.directory, isQuick: options.isQuick)
  }

  func all() throws {
    defer {
      do { try bench.remove() } catch { Output.problem("cannot remove \(bench.path): \(error)") }
    }
    let groups = RowGroup.all.filter {
      options.only.isEmpty || options.only.contains($0.name)
    }
    if !options.asJSON {
      Output.line(
        "in \(bench.path) (\(try bench.fileSystemName()); --directory /dev/shm measures on tmpfs, "
          + "if there is one)")
    }
    var rows: [Row] = []
    for group in groups {
      Output.progress("measuring \(group.name) …")
      do {
        rows += try group.measure(bench)
      } catch {
        rows.append(Row(group.name, ours: [], notes: ["not measured: \(error)"]))
      }
    }
    Output.progress(nil)
    if options.asJSON {
      Output.line(try Report(rows, fileSystem: try bench.fileSystemName()).json())
    } else {
      for line in Table.lines(rows) { Output.line(line) }
    }
  }
}

/// Rows that are measured together, with their name for `--only`.
struct RowGroup: Sendable {
  let name: String
  let measure: @Sendable (Bench) throws -> [Row]

  static let all: [RowGroup] = [
    RowGroup(name: "publish", measure: ValueRows.measure),
    RowGroup(name: "update", measure: UpdateRows.measureAlone),
    RowGroup(name: "update-8", measure: UpdateRows.measureContended),
    RowGroup(name: "read", measure: ValueRows.measureReading),
    RowGroup(name: "codec", measure: CodecRows.measure),
    RowGroup(name: "defaults", measure: DefaultsRows.measure),
    RowGroup(name: "latency", measure: LatencyRows.measure),
    RowGroup(name: "idle", measure: ObserverRows.measureIdle),
    RowGroup(name: "memory", measure: ObserverRows.measureMemory),
    RowGroup(name: "names", measure: NamesRows.measure),
    RowGroup(name: "scale", measure: ScaleRows.measure),
    RowGroup(name: "start", measure: StartRow.measure),
    RowGroup(name: "durable", measure: ValueRows.measureDurable),
    RowGroup(name: "lone", measure: ValueRows.measureLone),
    RowGroup(name: "notify", measure: NotifyRow.measure),
    RowGroup(name: "presence", measure: PresenceRows.measure),
    RowGroup(name: "queue", measure: QueueRows.measure),
    RowGroup(name: "queue-rivals", measure: QueueRivalRows.measure),
    RowGroup(name: "queue-depth", measure: QueueDepthRows.measure),
    RowGroup(name: "log", measure: LogRows.measure),
    RowGroup(name: "request", measure: RequestRows.measure),
    RowGroup(name: "files", measure: FileRows.measure),
    RowGroup(name: "coordination", measure: CoordinationRows.measure),
    RowGroup(name: "etcd", measure: EtcdRows.measure),
  ]
}

/// The options of the command line.
struct Options {
  struct Misuse: Error, CustomStringConvertible {
    let description: String
  }

  /// The directory of the measurement; its file system decides most of the figures.
  var directory: String
  /// The rows to measure; empty means all.
  var only: [String] = []
  var asJSON = false
  /// A file with the output of a run with `--json`, to draw instead of measuring.
  var plotted: String?
  /// Fewer rounds and names, to see that everything works.
  var isQuick = false

  static let usage = """
    usage: benchmarks [--directory DIR] [--only NAME,…] [--json] [--quick]
           benchmarks --plot FILE
    names: \(RowGroup.all.map(\.name).joined(separator: ", "))
    Each row is measured alternately with its floor, in the same directory. --directory /dev/shm
    measures on tmpfs. --plot draws the output of a run with --json as an SVG file.
    """

  init(_ arguments: [String]) throws(Misuse) {
    directory = Self.defaultDirectory
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--json": asJSON = true
      case "--quick": isQuick = true
      case "--plot": plotted = try Self.value(of: argument, &rest)
      case "--directory": directory = try Self.value(of: argument, &rest)
      case "--only":
        only = try Self.value(of: argument, &rest).split(separator: ",").map(String.init)
      case "--help", "-h":
        print(Self.usage)
        Program.exit(0)
      default: throw Misuse(description: "unknown argument \"\(argument)\"\n\(Self.usage)")
      }
    }
    let names = RowGroup.all.map(\.name)
    if let unknown = only.first(where: { !names.contains($0) }) {
      throw Misuse(description: "no row is called \"\(unknown)\"\n\(Self.usage)")
    }
  }

  private static func value(
    of option: String, _ rest: inout ArraySlice<String>
  ) throws(Misuse) -> String {
    guard let value = rest.popFirst() else {
      throw Misuse(description: "\(option) needs a value\n\(usage)")
    }
    return value
  }

  // The build directory lies on a real disk, /tmp possibly not.
  private static var defaultDirectory: String {
    do throws(Errno) {
      if try fileStatus(".build").kind == .directory { return ".build" }
    } catch {
      // The program was not run in the package's directory.
      return Program.environment("TMPDIR") ?? "/tmp"
    }
    return Program.environment("TMPDIR") ?? "/tmp"
  }
}
