import SystemCalls

/// One run of the program: all requested rows, in order.
struct Run {
  let options: Options
  let bench: Bench

  init(_ options: Options) throws {
    self.options = options
    bench = try Bench(under: options.directory, isQuick: options.isQuick)
  }

  func all() throws {
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
        rows.append(
          Row(group.name, ours: [], notes: ["not measured: \(error)"]))
      }
    }
    Output.progress(nil)
    if options.asJSON {
      Output.line(Table.json(rows, fileSystem: try bench.fileSystemName()))
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
    RowGroup(name: "publish", measure: PublishRows.measure),
    RowGroup(name: "update", measure: UpdateRows.measureAlone),
    RowGroup(name: "update-8", measure: UpdateRows.measureContended),
    RowGroup(name: "read", measure: ReadRows.measure),
    RowGroup(name: "defaults", measure: DefaultsRows.measure),
    RowGroup(name: "latency", measure: LatencyRows.measure),
    RowGroup(name: "idle", measure: ObserverRows.measureIdle),
    RowGroup(name: "memory", measure: ObserverRows.measureMemory),
    RowGroup(name: "names", measure: NamesRows.measure),
    RowGroup(name: "start", measure: StartRow.measure),
    RowGroup(name: "durable", measure: PublishRows.measureDurable),
    RowGroup(name: "lone", measure: PublishRows.measureLone),
    RowGroup(name: "notify", measure: NotifyRow.measure),
    RowGroup(name: "presence", measure: PresenceRows.measure),
    RowGroup(name: "queue", measure: QueueRows.measure),
    RowGroup(name: "queue-rivals", measure: QueueRivalRows.measure),
    RowGroup(name: "queue-depth", measure: QueueDepthRows.measure),
    RowGroup(name: "request", measure: RequestRows.measure),
    RowGroup(name: "files", measure: FileRows.measure),
    RowGroup(name: "coordination", measure: CoordinationRows.measure),
  ]
}
