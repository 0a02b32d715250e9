enum UpdateCommand {
  static let description = CommandDescription(
    name: "update",
    abstract: "Change a message by a command, without losing anybody's change.",
    discussion: """
      The command reads the message on standard input, null if there is none, and prints the new \
      one; if it fails, nothing changes. It may run more than once: when it took so long that \
      another process was let in, it is run again with the newer message.
      """,
    positionals: [.identifier],
    tail: TailDescription(
      name: "command", help: "Reads the message and prints the new one, both as JSON."))
}
