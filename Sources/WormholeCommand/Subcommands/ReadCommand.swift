import AppGroup
import PropertyLists

struct ReadCommand: Subcommand {
  static let description = CommandDescription(
    name: "read",
    abstract: "Print the latest message; exit status 1 if there is none.",
    positionals: [.identifier],
    options: [OutputFormat.option])

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let identifier = arguments.requiredText("identifier")
    guard let message = try arguments.container.openExisting()?.value(identifier).read() else {
      throw CommandError(
        verb: "read", object: identifier.quoted, reason: "there is no such message", status: .no)
    }
    try environment.print(arguments.outputFormat.bytes(message, of: identifier.quoted))
    return .done
  }
}
