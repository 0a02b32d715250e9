enum DemoCommand {
  static let description = CommandDescription(
    name: "demo",
    abstract: "Show two processes that talk to each other, in a container of their own.",
    needsContainer: false)
}
