enum StatusCommand {
  static let description = CommandDescription(
    name: "status",
    abstract: "Show what is in the container, who is here and who holds what.",
    options: [.json])
}
