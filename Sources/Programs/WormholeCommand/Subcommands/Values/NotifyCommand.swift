import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let notify = CommandDescription(
    name: "notify",
    abstract: "Post notifications, which carry no value, and wait for them.",
    discussion: """
      A notification has a number, too, which posting does not change: 'notify set NAME NUMBER' sets it, and \
      'notify get NAME' prints it.
      """,
    subcommands: [.notifyPost, .notifyWait, .notifyRemove, .notifyGet, .notifySet])

  static let notifyPost = CommandDescription(
    name: "post",
    abstract: "Post notifications.",
    arguments: [.notificationNames]
  ) { arguments, _ in
    let container = try arguments.container.open()
    for name in arguments.texts("name") { try container.notification(name).post() }
  }

  static let notifyWait = CommandDescription(
    name: "wait",
    abstract: "Print the names of notifications as they are posted, one line each.",
    discussion: """
      The command prints 'listening' on standard error; from then on it misses nothing. Several \
      posts of one name may be printed as one. With --json a line is {"name": ..., "time": ...}, with the \
      time at which the post was seen. While there is no container there is no post.

      \(eachCommand) Its environment has WORMHOLE_IDENTIFIER, the name, and WORMHOLE_TIME.
      """,
    arguments: [
      .notificationNames, .count, .timeout, .readyDescriptor,
      .flag("json", help: "Print a line of JSON for each instead of the name alone."),
      .command(forEach: "line"),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let opened = try arguments.container.openToListen(until: deadline, environment)
    let names = arguments.texts("name")
    let posts = Backlog<Int>.latest { $0 }
    let queue = Blocking.queue()
    let registrations = try names.enumerated().map { index, name in
      try opened.container.notification(name).observe(
        startsWithPast: opened.isNew, calling: queue
      ) { _ in posts.add(index) }
    }
    for (registration, name) in zip(registrations, names) {
      if let detection = registration.detection { environment.reportIfPolling(detection, name) }
    }
    if !opened.isNew { environment.reportListening() }
    try withExtendedLifetime(registrations) {
      try arguments.handleEach(of: posts.next, until: deadline) { index in
        let (name, date) = (names[index], Date())
        return try arguments.hand(
          ["name": name, "time": date] as JSONObject, text: name.onOneLine, titled: name.quoted,
          environment,
          variables: CommandVariable.common(identifier: name, time: date, sender: nil))
      }
    }
  }

  static let notifyGet = CommandDescription(
    name: "get",
    abstract: "Print the number of a notification; 0 if it was never set.",
    arguments: [.notificationName], isHidden: true
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    let state = try arguments.container.openExisting()?.notification(name).state()
    try environment.print(line: String(state ?? 0))
  }

  static let notifySet = CommandDescription(
    name: "set",
    abstract: "Set the number of a notification; nothing is posted.",
    arguments: [
      .notificationName, .operand("number", .unsigned, help: "A number of 64 bits."),
    ], isHidden: true
  ) { arguments, _ in
    guard let state = arguments.unsigned("number") else {
      preconditionFailure("the parser accepts only numbers here")
    }
    try arguments.container.open().notification(arguments.requiredText("name")).setState(state)
  }

  static let notifyRemove = CommandDescription(
    name: "remove",
    abstract: "Remove notifications, with their states; exit status 1 if one was never used.",
    discussion: "Those that wait for one go on, and print nothing.",
    arguments: [.notificationNames]
  ) { arguments, environment in
    let container = try arguments.container.openExisting()
    var status = ExitStatus.done
    for name in arguments.texts("name") where try container?.notification(name).remove() != true {
      environment.report(
        CommandError.no("remove \(name.quoted)", because: "there is no such notification"))
      status = .no
    }
    try status.end()
  }
}
