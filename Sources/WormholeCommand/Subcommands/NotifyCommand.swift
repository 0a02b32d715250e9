/// The group of commands for notifications: names without a payload.
enum NotifyCommand {
  static let description = CommandDescription(
    name: "notify",
    abstract: "Post and await notifications: names that carry no message.",
    subcommands: [
      NotifyPostCommand.description, NotifyWaitCommand.description,
      NotifyGetCommand.description, NotifySetCommand.description,
    ])
}

enum NotifyPostCommand {
  static let description = CommandDescription(
    name: "post",
    abstract: "Post notifications.",
    positionals: [.notificationNames])
}

enum NotifyWaitCommand {
  static let description = CommandDescription(
    name: "wait",
    abstract: "Print the names of notifications as they are posted, a line each.",
    discussion: """
      The command says 'listening' on standard error once it cannot miss anything any more. \
      Several posts of one name may be printed as one.
      """,
    positionals: [.notificationNames],
    options: [.count, .timeout])
}

enum NotifyGetCommand {
  static let description = CommandDescription(
    name: "get",
    abstract: "Print the state of a notification, a number; 0 if it was never set.",
    positionals: [.notificationName])
}

enum NotifySetCommand {
  static let description = CommandDescription(
    name: "set",
    abstract: "Set the state of a notification; nothing is posted.",
    positionals: [
      .notificationName,
      PositionalDescription(name: "number", help: "The state, of 64 bits.", kind: .unsigned),
    ])
}
