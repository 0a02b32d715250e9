import Wormhole
import WormholeInspection
import WormholePeers
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let status = CommandDescription(
    name: "status",
    abstract: "Show the content of the container, the processes present and the leases held.",
    discussion: """
      It only reads: nothing changes, and no process is disturbed.

      With --watch it is shown again whenever something has happened in the container; at a terminal also \
      every 2 seconds, on a cleared screen, as much as that shows. The command prints 'listening' on standard error. With --json \
      each is one line.
      """,
    arguments: [
      .json, .flag("watch", help: "Go on, and show it again when something happens."),
      .count, .timeout, .readyDescriptor,
    ]
  ) { arguments, environment in
    if arguments.has("watch") { return try watchStatus(arguments, environment) }
    guard let container = try arguments.container.openExisting() else {
      let path = try arguments.container.path()
      return try environment.print(
        arguments, json: ["container": path],
        text: "\(path)\n  no container yet; the first value makes one")
    }
    try environment.print(
      arguments.marked(arguments.status(of: container, environment), environment))
  }
  .refusing(ParsedArguments.watchProblem)
}

extension ParsedArguments {
  /// A status, with colors if it is for people at a terminal.
  fileprivate func marked(_ status: [UInt8], _ environment: CommandEnvironment) -> [UInt8] {
    has("json")
      ? status : Array(environment.marked(String(decoding: status, as: UTF8.self)).utf8)
  }

  fileprivate func status(
    of container: SharedContainer, _ environment: CommandEnvironment
  ) throws -> [UInt8] {
    // Only what is printed of a value is kept, because there may be a hundred thousand.
    var values = StatusValues(isJSON: has("json"), columns: environment.tableColumns)
    var report = try container.report(
      ReportScope(.members, use: OwnUse.of) { value in
        values.add(value)
        return value.hasFinding || value.condition == .absent
      })
    let peers = peers(in: container, report, environment).map { PeerWork($0, in: report) }
    var faults = NameFaults()
    let claims = try container.claims(&faults).map(NamedClaim.init)
    report.failures += faults.all
    guard has("json") else {
      let text = StatusText(
        report: report, values: values.text(), peers: peers, claims: claims,
        columns: environment.columns, tableColumns: environment.tableColumns)
      return Array(text.rendered.utf8)
    }
    let others: JSONObject = [
      "peers": peers, "claims": claims,
      "failed": report.own.queues.flatMap(\.peerFailures).map(\.object),
    ]
    var line = try PropertyListValue(json: report, .wholeSeconds)
    // Scripts find the user's names at the top.
    for part in try [line["names"], PropertyListValue(json: others, .wholeSeconds)] {
      for (key, value) in part?.dictionaryValue ?? [:] { line[key] = value }
    }
    line["names"] = nil
    return try outputFormat.bytes(line, of: "the status", texts: ["values": values.jsonText()])
  }
}

/// The text of a status for each value.
private struct StatusValues {
  let isJSON: Bool
  private var json = Array("[".utf8)
  private var rows = ""
  private var table: LongTable
  private var failure: (any Error)?

  init(isJSON: Bool, columns: Int?) {
    self.isJSON = isJSON
    table = LongTable(["VALUE", "SIZE", "CHANGED", "BY"], columns: columns)
  }

  mutating func add(_ value: ContainerReport.NamedContent) {
    guard isJSON else {
      if value.condition != .absent { rows += table.add([value.identifier] + value.cells) }
      return
    }
    do {
      if json.count > 1 { json.append(UInt8(ascii: ",")) }
      json += try JSONWriter.bytes(PropertyListValue(json: value, .wholeSeconds))
    } catch {
      failure = error
    }
  }

  /// Returns the tables.
  mutating func text() -> String { rows + table.take() }

  /// Returns the array.
  func jsonText() throws -> [UInt8] {
    if let failure { throw failure }
    return json + "]".utf8
  }
}

/// How often to look at the status again without an event: a stopped process causes none.
private let statusInterval: Duration = .seconds(2)
/// The shortest pause between two looks, so that a burst of events is shown as one.
private let statusPause: Duration = .milliseconds(100)

private func watchStatus(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws {
  let deadline = arguments.deadline()
  let opened = try arguments.container.openToListen(
    until: deadline, environment, makesContainer: false)
  let events = Backlog<Bool>.latest { _ in true }
  let monitor = try opened.container.monitor { _ in events.add(true) }
  environment.reportIfPolling(monitor.detection, "the container")
  if !opened.isNew { environment.reportListening() }
  let clears = environment.isTerminal && environment.variable("TERM") != "dumb"
  var remaining = arguments.count("count") ?? .max
  var screen = environment
  try withExtendedLifetime(monitor) {
    while true {
      let begun = ContinuousClock.now
      // Its user may have changed its size.
      if clears { screen.measure() }
      let status = try arguments.status(of: opened.container, screen)
      // It may read the whole container, so it takes at most a third of the time.
      let pause = max(statusPause, (.now - begun) * 2)
      let shown = arguments.marked(clears ? fitted(status, screen) : status, environment)
      try environment.print((clears ? Array("\u{1B}[H\u{1B}[2J".utf8) : []) + shown)
      remaining -= 1
      if remaining == 0 { return }
      pauseThread(min(pause, max(.zero, deadline - .now)))
      // Only people notice that time passes.
      let look = environment.isTerminal ? min(deadline, .now + statusInterval) : deadline
      if events.next(until: look) == nil, ContinuousClock.now >= deadline {
        throw ExitStatus.deadline
      }
    }
  }
}

/// The first lines of a status, as many as a screen shows; the last one says how many are left out.
private func fitted(_ status: [UInt8], _ screen: CommandEnvironment) -> [UInt8] {
  let lines = status.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  // The cursor is in its own row, after the last line break.
  let height = lines.map { line in
    (String(decoding: line, as: UTF8.self).count + screen.columns - 1) / screen.columns
  }
  guard let rows = screen.rows, rows > 2, height.reduce(0, { $0 + max($1, 1) }) > rows
  else { return status }
  var left = rows - 2
  let shown = zip(lines, height).prefix { _, height in
    left -= max(height, 1)
    return left >= 0
  }
  return shown.flatMap { $0.0 + [UInt8(ascii: "\n")] }
    + Array("… \(lines.count - 1 - shown.count) more lines\n".utf8)
}

/// Empty if they cannot be read, which hides nothing else.
private func peers(
  in container: SharedContainer, _ report: ContainerReport, _ environment: CommandEnvironment
) -> [Peer] {
  // Otherwise a name may be missing.
  let isWhole = !report.isPartial && report.failures.isEmpty
  do {
    var faults = NameFaults()
    defer { for fault in faults.all { environment.report(fault) } }
    return try betweenPeers("look for peers") {
      try Peer.all(
        in: container, &faults, presences: isWhole ? report.own.presences.map(\.name) : nil,
        queues: isWhole ? report.own.queues.map(\.name) : nil)
    }
  } catch {
    environment.report(error)
    return []
  }
}

extension PeerFailure {
  fileprivate var object: JSONObject {
    var object: JSONObject = [
      "id": id, "peer": peer, "sender": sender, "reason": reason, "date": date,
    ]
    switch content {
    case .message(let value): object["message"] = value
    case .file(let name, let size): (object["name"], object["size"]) = (name, size)
    }
    return object
  }
}
