import Wormhole
import WormholePropertyLists
import WormholeToolkit

extension CommandDescription {
  static let supervisedRun = CommandDescription(
    name: "run",
    abstract:
      "Run a command, be present under a name while it runs, and start it again if it fails.",
    discussion: """
      Other processes see this one, and learn at once when it ends or is killed. The \
      command's environment names the same container, and WORMHOLE_RESTARTS counts the restarts in a \
      row, from 0. Of the descriptors of this program it has 0, 1 and 2. The command is killed when this \
      program is killed. What it leaves behind belongs to it, and is waited for, apart from a daemon: a \
      process with a session of its own (setsid) whose starter has ended.

      A command that fails is started again after a pause that doubles each time, up to a minute. When \
      it has failed too often in a row, this program ends with its status. A run of a minute or more \
      resets the count. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command and to what it has started. Then \
      it is not started again, and this program ends with the command's status, for example 143 after \
      SIGTERM.

      With --alone, only one process at a time runs under the name, and others wait for its end. When all \
      processes of its command have been stopped for 50 milliseconds, they kill them and take the name over. WORMHOLE_FENCE in its environment is \
      a number that is larger with each such process: see 'presence enter'. On etcd a process that is cut off \
      loses the place when its session ends (ttl=): its command gets SIGTERM after eight \
      tenths of that time and SIGKILL after nine, before another one can begin; the exit status is 1.

      A service manager learns that this program is ready (sd_notify) when the command has been started \
      for the first time.
      """,
    arguments: [
      .value(
        "as", .live(.presence), named: "name",
        help: "The name of the presence; without it, the name of the command."),
      .flag("alone", help: "Wait until no other process has the name with --alone."),
      .value(
        "restart", .choice(RestartPolicy.Occasion.allCases.map(\.rawValue)), named: "when",
        standard: RestartPolicy.Occasion.onFailure.rawValue,
        help: "When the command is started again after its end."),
      .value(
        "retries", .unsigned, named: "n", standard: "5",
        help: "Start it again at most this many times in a row."),
      .value(
        "backoff", .duration, standard: "1", help: "The pause before the first of these starts."),
      .value(
        "timeout", .duration,
        help: "With --alone, give up waiting after this time, with exit status 124."),
      .readyDescriptor, .command(help: "The command to run."),
    ]
  ) { arguments, environment in
    let command = try arguments.requiredCommand()
    let presence = try arguments.container.open().presence(arguments.text("as") ?? command.name)
    let interruption = try Interruption(quits: true, adopts: true)
    let isAlone = arguments.has("alone")
    let content = PropertyListValue.object(["command": command.words])
    let deadline = arguments.deadline()
    let policy = RestartPolicy(
      occasion: arguments.choice("restart"), retries: arguments.unsigned("retries") ?? 0,
      backoff: arguments.duration("backoff") ?? .zero)
    let status = try LostBeforeStart.repeating {
      let entered: PresenceRegistration? =
        isAlone
        ? try environment.withoutTimeLimit {
          try interruption.wait {
            try await presence.enterExclusively(
              content: content, overtaking: presence.overtakingOfCommands, until: deadline)
          }
        } : try presence.enter(content: content)
      guard let registration = entered else { throw interruption.endStatus }
      defer { registration.close() }
      let role = isAlone ? try RoleWatch(registration) : nil
      return try environment.withoutTimeLimit {
        try supervise(command, policy, under: role, interruption, environment)
      }
    }
    try status.end()
  }
  .refusing { arguments in
    arguments.text("timeout") != nil && !arguments.has("alone")
      ? "--timeout belongs to --alone: without it, nothing is waited for" : nil
  }
}

/// Runs a command, again and again; without a role others may run beside it. Returns the last
/// status.
private func supervise(
  _ command: ExternalCommand, _ policy: RestartPolicy, under role: RoleWatch?,
  _ interruption: Interruption, _ environment: CommandEnvironment
) throws -> ExitStatus {
  var policy = policy
  var isFirst = true
  while true {
    let start = ContinuousClock.now
    let termination: Termination
    do {
      termination = try command.run(
        variables: ["WORMHOLE_RESTARTS": "\(policy.restarts)"], under: role, interruption
      ) { if isFirst { environment.reportReady() } }
    } catch let lost as LostBeforeStart where !isFirst {
      throw lost.error
    }
    isFirst = false
    let failure = command.failure(termination)
    let pause = interruption.isRequested ? nil : policy.pause(after: termination, of: .now - start)
    guard let pause else {
      // The sender of the signal knows why it ended.
      if let failure, !interruption.isRequested { environment.report(failure) }
      return ExitStatus(termination)
    }
    environment.report(
      "\(failure ?? "\(command.name) ended"); it is started again in \(pause.shortText) "
        + "(\(policy.restarts) of \(policy.retries))")
    guard try interruption.pause(pause) else { return ExitStatus(termination) }
  }
}

extension ExternalCommand {
  fileprivate var name: String { words[0].split(separator: "/").last.map(String.init) ?? words[0] }
}

/// When to restart a command that has ended: the decision of `run`, without a clock or a process.
struct RestartPolicy: Sendable {
  enum Occasion: String, CaseIterable, Sendable {
    case onFailure = "on-failure"
    case always
    case never
  }

  let occasion: Occasion
  /// The starts in a row that may follow a first one.
  let retries: UInt64
  /// The pause before the first of them.
  let backoff: Duration
  /// The number of restarts in a row.
  var restarts: UInt64 = 0

  /// The longest pause, unless the first one is longer.
  static let longestPause: Duration = .seconds(60)
  /// A command that ran this long did not fail for the same reason as the one before it.
  static let steadyTime: Duration = .seconds(60)

  /// Counts an end of the command; returns the pause before the next start, or nil if there is
  /// none.
  mutating func pause(after end: Termination, of runningTime: Duration) -> Duration? {
    switch occasion {
    case .never: return nil
    case .onFailure: if end == .exited(0) { return nil }
    case .always: break
    }
    if runningTime >= Self.steadyTime { restarts = 0 }
    guard restarts < retries else { return nil }
    // Doubled with each start.
    let pause = backoff * (1 << min(restarts, 20))
    restarts += 1
    return min(pause, max(backoff, Self.longestPause))
  }
}
