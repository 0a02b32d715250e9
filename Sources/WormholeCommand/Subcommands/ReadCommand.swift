enum ReadCommand {
  static let description = CommandDescription(
    name: "read",
    abstract: "Print the latest message; exit status 1 if there is none.",
    positionals: [.identifier],
    options: [OutputFormat.option])
}
