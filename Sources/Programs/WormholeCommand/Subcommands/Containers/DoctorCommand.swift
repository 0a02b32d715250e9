import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let doctor = CommandDescription(
    name: "doctor",
    abstract: "Show the problems of the container and how to repair them.",
    discussion: """
      Each problem is printed with its place and the command that repairs it. A fault: something is \
      lost or refused until it is repaired. A warning: something works, but slower or less safely than \
      it should. A note: a program that has ended left something that blocks nobody. The exit status \
      is 1 if there is a fault, with --strict if there is any problem, and 0 otherwise. Without \
      --sweep and --quarantine nothing changes; but in a directory doctor writes and removes an entry, \
      to see whether that is possible.
      """,
    arguments: [
      .flag(
        "sweep",
        help: """
          First remove the leftovers of dead processes, the empty names that nobody uses, and what has \
          expired: values, old receipts and records of queues, messages beyond a log's bounds. A lost \
          container.plist is written again.
          """),
      .value(
        "quarantine", .live(.message), named: "identifier",
        help: """
          First move this message's file into the container's quarantine. If it cannot be read, an \
          older version that the container has kept takes its place.
          """),
      .value(
        "quarantine-own", .identifier, named: "name",
        help: "The same for one of the package's own values, by the name that doctor prints."),
      .value(
        "quarantine-log", .live(.log), named: "name",
        help: "The same for the file of a log that is damaged; its messages stay."),
      .flag("strict", help: "Exit with status 1 for warnings and notes, too."),
      .json,
    ]
  ) { arguments, environment in
    var repairs = Repairs()
    var findings: [Finding] = []
    do {
      if let container = try arguments.container.openExisting() {
        repairs = try act(arguments, on: container)
        let report = try ContainerReport.complete(on: container, .everything)
        findings = Findings.of(report, options: arguments.container.shellOptions)
        // What was put aside just now is printed already.
        if !repairs.quarantined.isEmpty { findings.removeAll { $0.kind == .quarantine } }
        // An alarm of the cluster is more precise.
        if report.cluster?.alarms.isEmpty ?? true {
          findings = try Findings.ofWriting(in: container) + findings
        }
        if report.isPartial {
          environment.report("the container has more entries than doctor reads")
        }
      }
    } catch let error as AppGroupError {
      findings = [Findings.refused(error)]
      if [.unreachable, .timedOut].contains(error.code) {
        findings += try ClusterFindings.ofMembers(at: arguments.container.place().location)
      }
    } catch is CommandError {
      let container = arguments.container
      findings = [
        Findings.notMade(
          path: try container.path(), options: container.shellOptions, hint: try container.hint())
      ]
    }
    let known = Set(findings.map(\.path))
    findings += repairs.swept.failures.filter { !known.contains($0.path) }.map {
      // In use, so it blocks no process, and the next sweep removes it.
      Findings.refused($0, .unreadablePart, level: $0.code == .timedOut ? .note : nil)
    }
    findings += repairs.failures.map { Findings.refused($0, .unreadablePart) }
    if arguments.has("json") {
      try environment.print(json: json(repairs, findings))
    } else {
      try environment.print(text(repairs, findings, columns: environment.columns))
    }
    let isWell = findings.allSatisfy { $0.level < (arguments.has("strict") ? .note : .fault) }
    if !isWell || !repairs.missing.isEmpty { throw ExitStatus.no }
  }
}

/// The changes that the options requested, made before the report.
private struct Repairs {
  var swept = SharedContainer.SweepReport()
  /// The failures of the other repairs.
  var failures: [AppGroupError] = []
  var quarantined: [String] = []
  /// Names to be put aside that have no file.
  var missing: [String] = []
  /// The publication times of the versions that were put back.
  var putBack: [Date] = []
}

private func act(_ arguments: ParsedArguments, on container: SharedContainer) throws -> Repairs {
  var repairs = Repairs()
  if arguments.has("sweep") {
    repairs.swept = try container.sweepWithFiles()
    // Only now, because the sweep may make the room that it needs.
    try container.establishFormat()
  }
  let values = [
    arguments.text("quarantine").map { container.value($0) },
    arguments.text("quarantine-own").map { container.own.value($0) },
    arguments.text("quarantine-log").map { container.log($0).value },
  ]
  // It prints what it puts aside.
  let report = Diagnostics.onEvent
  Diagnostics.onEvent = nil
  defer { Diagnostics.onEvent = report }
  for value in values.compactMap({ $0 }) {
    do {
      guard let (place, kept) = try value.putAside(until: nil) else {
        repairs.missing.append(value.identifier)
        continue
      }
      repairs.quarantined.append(place)
      if let kept { repairs.putBack.append(kept) }
    } catch let error as AppGroupError {
      repairs.failures.append(error)
    }
  }
  return repairs
}

private func text(_ repairs: Repairs, _ findings: [Finding], columns: Int) -> String {
  var paragraphs = repairs.swept.removed.map { "removed \($0.onOneLine)\n" }
  let count = repairs.swept.names.count
  if count > 0 { paragraphs.append("removed \(count) empty \(count == 1 ? "name" : "names")\n") }
  paragraphs += repairs.quarantined.map { "put aside: \($0.onOneLine)\n" }
  paragraphs += repairs.missing.map { "not put aside: \($0.quoted.onOneLine) has no file\n" }
  paragraphs += repairs.putBack.map { "put back: the version of \($0.secondsText)\n" }
  guard let summary = findings.summary() else { return paragraphs.joined() + "nothing wrong\n" }
  let texts = findings.enumerated().map { index, finding in
    finding.text(number: index + 1, columns: columns)
  }
  return paragraphs.joined() + texts.joined(separator: "\n") + "\n\(summary)\n"
}

private func json(_ repairs: Repairs, _ findings: [Finding]) -> PropertyListValue {
  .object([
    "removed": repairs.swept.removed,
    "names": repairs.swept.names.isEmpty ? nil : repairs.swept.names,
    "quarantined": repairs.quarantined.first, "missing": repairs.missing.first,
    "putBack": repairs.putBack.first?.wholeSeconds, "findings": findings.map(\.propertyList),
  ])
}
