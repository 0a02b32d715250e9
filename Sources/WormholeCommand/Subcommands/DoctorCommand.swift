import AppGroup
import PropertyLists

struct DoctorCommand: Subcommand {
  static let description = CommandDescription(
    name: "doctor",
    abstract: "Show what is wrong with the container and how to mend it.",
    discussion: """
      Each thing is told with its place and the command that mends it. A fault loses or refuses \
      something until it is mended; a warning is what works, but slower or looser than it should; \
      a note is what a program leaves that has ended, and is in nobody's way. The exit status is 1 \
      if there is a fault, with --strict if there is anything, and 0 otherwise. Without --sweep \
      and --quarantine nothing is changed.
      """,
    options: [
      .flag(
        "sweep",
        help: "First remove what dead processes left behind, and empty names nobody uses."),
      .value(
        "quarantine", "identifier", .identifier,
        help: "First put this message's file aside, into the container's quarantine."),
      .value(
        "quarantine-own", "name", .identifier,
        help: "The same for one of the package's own values, by the name that doctor shows."),
      .flag("strict", help: "Exit with status 1 for warnings and notes, too."),
      .json,
    ])

  /// What was done before the look.
  private struct Deeds {
    var removed: [String] = []
    /// Names that nobody uses any more.
    var names: [String] = []
    var quarantined: [String] = []
    var failures: [AppGroupError] = []
  }

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    var deeds = Deeds()
    var findings: [Finding] = []
    do {
      if let container = try arguments.container.openExisting() {
        deeds = try act(arguments, on: container)
        let report = try ContainerReport.complete(on: container)
        findings = Findings.of(report, options: arguments.container.options)
        if report.isPartial { environment.tell("there is more than doctor looks at") }
      }
    } catch let error as AppGroupError {
      findings = [Findings.refused(error)]
    } catch is CommandError {
      let container = arguments.container
      findings = [
        Findings.notMade(
          path: try container.path(), options: container.options, hint: try container.hint())
      ]
    }
    findings += deeds.failures.map { Findings.refused($0, .unreadablePart) }
    if arguments.has("json") {
      try environment.print(line: JSONWriter.string(json(deeds, findings)))
    } else {
      try environment.print(
        Array(text(deeds, findings, columns: environment.columns).utf8))
    }
    let isWell = findings.allSatisfy { $0.level < (arguments.has("strict") ? .note : .fault) }
    return isWell ? .done : .no
  }

  private func act(_ arguments: ParsedArguments, on container: SharedContainer) throws -> Deeds {
    var deeds = Deeds()
    if arguments.has("sweep") {
      let swept = try container.sweep()
      deeds.removed = swept.removed
      deeds.names = swept.names
      deeds.failures = swept.failures
    }
    let values = [
      arguments.text("quarantine").map { container.value($0) },
      arguments.text("quarantine-own").map { container.own.value($0) },
    ]
    for value in values.compactMap({ $0 }) {
      do {
        if let place = try value.quarantine() { deeds.quarantined.append(place) }
      } catch let error as AppGroupError {
        deeds.failures.append(error)
      }
    }
    return deeds
  }

  private func text(_ deeds: Deeds, _ findings: [Finding], columns: Int) -> String {
    var paragraphs = deeds.removed.map { "removed \($0)\n" }
    if !deeds.names.isEmpty {
      let count = deeds.names.count
      paragraphs.append("removed \(count) empty \(count == 1 ? "name" : "names")\n")
    }
    paragraphs += deeds.quarantined.map { "put aside: \($0)\n" }
    guard let summary = findings.summary() else { return paragraphs.joined() + "nothing wrong\n" }
    let told = findings.enumerated().map { index, finding in
      finding.text(number: index + 1, columns: columns)
    }
    return paragraphs.joined() + told.joined(separator: "\n") + "\n\(summary)\n"
  }

  private func json(_ deeds: Deeds, _ findings: [Finding]) -> PropertyListValue {
    .object([
      "removed": .array(deeds.removed.map { .string($0) }),
      "names": deeds.names.isEmpty ? nil : .array(deeds.names.map { .string($0) }),
      "quarantined": deeds.quarantined.first.map { .string($0) },
      "findings": .array(findings.map(\.propertyList)),
    ])
  }
}
