import AppGroup
import Dispatch

/// The commands for notifications: names without a payload.
enum NotifyCommand {
  static let description = CommandDescription(
    name: "notify",
    abstract: "Post notifications, which carry no message, and wait for them.",
    subcommands: [
      NotifyPostCommand.description, NotifyWaitCommand.description,
      NotifyGetCommand.description, NotifySetCommand.description,
    ])
}

struct NotifyPostCommand: Subcommand {
  static let description = CommandDescription(
    name: "post",
    abstract: "Post notifications.",
    positionals: [.notificationNames])

  static let commandPath = ["notify", "post"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let container = try arguments.container.open()
    for name in arguments.texts("name") { try container.notification(name).post() }
    return .done
  }
}

struct NotifyWaitCommand: Subcommand {
  static let description = CommandDescription(
    name: "wait",
    abstract: "Print the names of notifications as they are posted, one line each.",
    discussion: """
      The command prints 'listening' on standard error; from then on it misses nothing. Several \
      posts of one name may be printed as one.
      """,
    positionals: [.notificationNames],
    options: [.count, .timeout])

  static let commandPath = ["notify", "wait"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    guard let opened = try arguments.container.openToListen(until: deadline, environment) else {
      return .deadline
    }
    let names = arguments.texts("name")
    let posts = Backlog<Int>.latest { $0 }
    let queue = DispatchQueue(label: "wormhole.wait")
    let registrations = try names.enumerated().map { index, name in
      try opened.container.notification(name).observe(
        startsWithPast: opened.isNew, on: queue
      ) { _ in posts.add(index) }
    }
    for (registration, name) in zip(registrations, names) {
      if let detection = registration.detection { environment.tellIfPolling(detection, name) }
    }
    if !opened.isNew { environment.tellListening() }
    return try withExtendedLifetime(registrations) {
      var remaining = arguments.count("count") ?? .max
      while remaining > 0 {
        guard let index = posts.next(until: deadline) else { return .deadline }
        try environment.print(line: names[index])
        remaining -= 1
      }
      return .done
    }
  }
}

struct NotifyGetCommand: Subcommand {
  static let description = CommandDescription(
    name: "get",
    abstract: "Print the state of a notification, a number; 0 if it was never set.",
    positionals: [.notificationName])

  static let commandPath = ["notify", "get"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    let state = try arguments.container.openExisting()?.notification(name).state()
    try environment.print(line: String(state ?? 0))
    return .done
  }
}

struct NotifySetCommand: Subcommand {
  static let description = CommandDescription(
    name: "set",
    abstract: "Set the state of a notification; nothing is posted.",
    positionals: [
      .notificationName,
      PositionalDescription(
        name: "number", help: "The state, a number of 64 bits.", kind: .unsigned),
    ])

  static let commandPath = ["notify", "set"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    guard let state = arguments.unsigned("number") else {
      preconditionFailure("the parser accepts only numbers here")
    }
    try arguments.container.open().notification(arguments.requiredText("name")).setState(state)
    return .done
  }
}
