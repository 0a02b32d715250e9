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
        "quarantine", .identifier, named: "kind:name",
        help: """
          First move this file into the container's quarantine, such as value:seats. If a value cannot be \
          read, an older version that the container has kept takes its place; of a log the messages stay. The \
          kind 'own' is for the package's own values.
          """),
      .flag("strict", help: "Exit with status 1 for warnings and notes, too."),
      .json,
    ]
  ) { arguments, environment in
    var repairs = Repairs()
    var findings: [Finding] = []
    do {
      if let container = try arguments.container.openExisting() {
        repairs = try act(arguments, on: container)
        let scope = ReportScope(.everything, use: OwnUse.of, keeps: \.hasFinding)
        let report = try container.report(scope)
        findings = Findings.of(report, options: arguments.container.shellOptions)
        // What was just put aside is already printed.
        if repairs.quarantined != nil { findings.removeAll { $0.kind == .quarantine } }
        // An alarm of the cluster is more precise.
        if report.cluster?.alarms.isEmpty ?? true {
          findings = try Findings.ofWriting(in: container) + findings
        }
        if report.isPartial {
          environment.report("the container has more entries than doctor reads")
        }
      }
    } catch let error as WormholeError {
      findings = [Findings.refused(error)]
      if [.clusterUnreachable, .timedOut].contains(error.code) {
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
      let swept = repairs.swept
      let line: JSONObject = [
        "removed": swept.removed, "names": swept.names.isEmpty ? nil : swept.names,
        "quarantined": repairs.quarantined, "missing": repairs.missing,
        "putBack": repairs.putBack, "findings": findings,
      ]
      try environment.print(json: line, .wholeSeconds)
    } else {
      try environment.print(text(repairs, findings, columns: environment.columns))
    }
    let isWell = findings.allSatisfy { $0.level < (arguments.has("strict") ? .note : .fault) }
    if !isWell || repairs.missing != nil { throw ExitStatus.no }
  }
  .refusing { arguments in
    arguments.text("quarantine").flatMap { title in
      QuarantineKind(of: title) == nil
        ? "give --quarantine value:NAME, log:NAME or own:NAME" : nil
    }
  }
}

/// The kinds of things with a file that can be put aside.
private enum QuarantineKind: String {
  case value, log, own

  /// - Parameter title: the kind and the name, with a colon between them.
  init?(of title: String) {
    guard let colon = title.firstIndex(of: ":"), title.index(after: colon) < title.endIndex else {
      return nil
    }
    self.init(rawValue: String(title[..<colon]))
  }
}

/// The changes that the options requested, made before the report.
private struct Repairs {
  var swept = SharedContainer.SweepReport()
  /// The failures of the other repairs.
  var failures: [WormholeError] = []
  /// What was put aside.
  var quarantined: String?
  /// The name to be put aside, if it has no file.
  var missing: String?
  /// The publication time of the version that was put back.
  var putBack: Date?
}

private func act(_ arguments: ParsedArguments, on container: SharedContainer) throws -> Repairs {
  var repairs = Repairs()
  if arguments.has("sweep") {
    repairs.swept = try container.sweepWithFiles()
    // Only now, because the sweep may make the room that it needs.
    try container.establishFormat()
  }
  let value = arguments.text("quarantine").flatMap { container.value(toPutAside: $0) }
  // It prints what it puts aside.
  let report = Diagnostics.onEvent
  Diagnostics.onEvent = nil
  defer { Diagnostics.onEvent = report }
  guard let value else { return repairs }
  do {
    if let (place, kept) = try value.putAside(until: nil) {
      repairs.quarantined = place
      repairs.putBack = kept
    } else {
      repairs.missing = value.identifier
    }
  } catch let error as WormholeError {
    repairs.failures.append(error)
  }
  return repairs
}

extension SharedContainer {
  fileprivate func value(toPutAside title: String) -> PlainValue? {
    guard let kind = QuarantineKind(of: title) else { return nil }
    let name = String(title.dropFirst(kind.rawValue.count + 1))
    switch kind {
    case .value: return value(name)
    case .log: return log(name).value
    case .own: return own.value(name)
    }
  }
}

private func text(_ repairs: Repairs, _ findings: [Finding], columns: Int) -> String {
  var paragraphs = repairs.swept.removed.map { "removed \($0.onOneLine)\n" }
  let count = repairs.swept.names.count
  if count > 0 { paragraphs.append("removed \(count) empty \(count == 1 ? "name" : "names")\n") }
  paragraphs += [
    repairs.quarantined.map { "put aside: \($0.onOneLine)\n" },
    repairs.missing.map { "not put aside: \($0.quoted.onOneLine) has no file\n" },
    repairs.putBack.map { "put back: the version of \($0.secondsText)\n" },
  ].compactMap(\.self)
  guard let summary = findings.summary() else { return paragraphs.joined() + "nothing wrong\n" }
  let texts = findings.enumerated().map { index, finding in
    finding.text(number: index + 1, columns: columns)
  }
  return paragraphs.joined() + texts.joined(separator: "\n") + "\n\(summary)\n"
}
