import Wormhole

extension CommandDescription {
  /// Asked by the completion scripts. It makes nothing, says nothing, and never keeps a shell waiting.
  static let completeNames = CommandDescription(
    name: "complete-names",
    abstract: "Print the names that exist, one line each, for completion.",
    positionals: [
      PositionalDescription(
        name: "kind", help: "The kind of the names.",
        kind: .choice(LiveNames.allCases.map(\.rawValue)))
    ],
    options: [.suite] + ContainerSelection.options, needsContainer: false, isHidden: true
  ) { arguments, environment in
    environment.answers?.endSilently(after: .milliseconds(500))
    guard let kind = LiveNames(rawValue: arguments.requiredText("kind")) else { return }
    do {
      let container = try selection(arguments, environment)?.existing()
      let names = try kind.names(in: container, suite: arguments.text("suite"))
      // A shell's word cannot be completed over lines.
      let lines = names.filter { $0 == $0.onOneLine }.map { $0 + "\n" }
      try environment.print(lines.joined())
    } catch let status as ExitStatus {
      throw status
    } catch {
      // While somebody types, an error would only disturb the line: the command itself reports it.
      throw ExitStatus.no
    }
  }
}

/// The container that the line names, as far as it is written.
private func selection(
  _ arguments: ParsedArguments, _ environment: CommandEnvironment
) -> ContainerSelection? {
  func named(_ option: String, _ variable: String) -> String? {
    arguments.text(option) ?? environment.variable(variable).flatMap { $0.isEmpty ? nil : $0 }
  }
  if let group = arguments.text("group") { return .group(group) }
  if let directory = named("container", ContainerSelection.directoryVariable) {
    return .directory(directory)
  }
  return named("group", ContainerSelection.groupVariable).map { .group($0) }
}
