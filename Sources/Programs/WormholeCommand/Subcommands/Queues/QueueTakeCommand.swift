import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals

extension CommandDescription {
  static let queueTake = CommandDescription(
    name: "take",
    abstract: "Take entries from a queue: print each, or give it to a command.",
    discussion: """
      Without a COMMAND the entry is acknowledged when its line is written. A COMMAND gets it on \
      standard input. If it ends with status 0, the entry is acknowledged. After any other status the \
      entry is delivered to the next process that takes, and this process ends with that status. The \
      same happens to an entry whose process is killed; COMMAND is killed with it. COMMAND has ended when \
      all that it has started has ended, apart from a daemon (see 'lock').

      With --retries such a failure does not end taking: the entry is delivered again after a pause that \
      doubles each time, up to an hour. After the first attempt and that many retries the entry has failed, \
      and is kept: 'queue list' shows it, 'queue retry' sends it again, and 'queue remove' removes it. \
      With --fail-status that is so after the first attempt that ends with this status. No status \
      deletes an entry.

      With --ack another program is the worker, and a line of standard input says what became of an entry: \
      its id acknowledges it, 'ID retry REASON' and 'ID fail REASON' do as a COMMAND that fails. It has as \
      many at a time as --jobs says. When its input ends, what has no answer goes back.

      With --run each entry is a command of 'queue put -- COMMAND', and is run in the directory of its \
      sender, without input. The process takes one after the other, as with --follow, unless --count or --drain is \
      given. A command that fails, cannot be started or has no directory any more has failed, as with --retries 0, \
      unless --retries is given; one whose process is killed is run again. What it prints, up to the last \
      64 KiB, and its status are kept for the last 100 or so: 'queue list NAME ID' shows them. They are messages of the \
      log NAME.results, and 'log bounds' keeps more or fewer.

      With --limit COMMAND gets SIGTERM when it has run that long, and SIGKILL ten seconds later; that is \
      a failure with status 124.

      With --jobs that many processes take, each of which runs one COMMAND at a time. 'listening' is \
      printed once, when all of them wait. They end together with this process, and an entry that one of \
      them was handling is delivered again. When one of them fails or is killed, the others end after the \
      commands that they run, and the exit status is that of the first one.

      The command's environment has WORMHOLE_IDENTIFIER (the queue's name), WORMHOLE_ENTRY (the id), \
      WORMHOLE_SENDER, WORMHOLE_TIME (of sending), WORMHOLE_REDELIVERY (1 for an entry that was \
      delivered, and perhaps handled, before, else 0) and WORMHOLE_ATTEMPT (1 for the first). With \
      --details a line is {"attempt": ..., "id": ..., \
      "redelivery": ..., "sender": ..., "sent": ..., "value": ...}.

      A process that was stopped, for example with Ctrl-Z, loses the entry that it was handling to \
      another one, which kills COMMAND first; while a process of COMMAND runs, it keeps the entry. When it is continued, it says so on standard error, joins again, and goes on taking; \
      an entry that was lost does not count. The same happens after the container was removed, as soon \
      as it is there again.

      Any number of processes may take at the same time. If there is no entry, the command waits for \
      one, and prints 'listening' on standard error when it begins to. With --timeout 0 it ends at once, \
      with status 1 if the queue is empty. With --drain it takes what is there, retries included, and \
      ends with status 0. Waiting does not make the queue; the first entry does, and the command joins then. If nothing \
      reads the output, it waits as long as --timeout says, but at least three seconds; then the entry is \
      delivered again. \
      SIGINT, SIGTERM and SIGHUP are passed on to the command; after its end they end taking, and an \
      entry that it has not handled goes back, which is no attempt. While none runs, the exit status is 0 with --follow, and otherwise 128 plus the signal's number.
      """,
    arguments: [
      .queueName,
      .value("count", .count, standard: "1", help: "Take this many, one after the other."),
      .flag("follow", help: "Go on until a signal ends this process."),
      .flag("drain", help: "Go on until no entry is left."),
      .flag("run", help: "Run the command that each entry is; its output is kept, and its status."),
      .value(
        "jobs", letter: "j", .count, named: "n", standard: "1",
        help:
          "Run this many commands at the same time; with --follow, --drain or --run, at most \(mostJobs)."
      ),
      .value("limit", .duration, help: "The longest time that a command may run; by default any."),
      .timeout, .readyDescriptor,
      .details,
      .flag(
        "ack", help: "Read an answer to each entry, which is printed as with --details; see above."),
      .jsonAlways, .format,
      .retries, .backoff, .failStatus("an entry"), .command(forEach: "entry"),
    ]
  ) { arguments, environment in
    let isCopy = environment.variable(CommandVariable.copy) != nil
    if let jobs = arguments.count("jobs"), jobs > 1, !isCopy, !arguments.has("ack") {
      return try environment.withoutTimeLimit {
        try runCopies(
          jobs, until: arguments.deadline(), endsWithOne: !arguments.has("drain"), environment)
      }.end()
    }
    let drains = arguments.has("drain")
    let deadline = drains ? .now : arguments.deadline()
    let name = arguments.requiredText("name")
    let queue = try arguments.container.open(.queue(name)).queue(name)
    let interruption = try Interruption(
      adopts: true, endsWithReader: arguments.tail == nil && !arguments.has("run"),
      endsWithInput: isCopy)
    let isWaiting = Atomic(false)
    let reportWaiting: @Sendable (ContinuousClock.Instant) -> Void = { limit in
      if limit > .now, !isWaiting.exchange(true, ordering: .relaxed) {
        environment.reportListening(endsWithReader: false)
      }
    }
    let joined = JoinedWorker()
    // Whatever a call on another thread is doing: what it takes would otherwise count as attempted.
    defer { joined.end() }
    let found = try interruption.wait {
      guard try queue.awaitFirstUse(until: deadline, willWait: { reportWaiting(deadline) }) else {
        throw arguments.statusWithoutEntry(in: queue, environment)
      }
      let worker = try joined.begin(arguments.join(queue, until: deadline, environment))
      return (worker, try worker.nextNow())
    }
    guard let (worker, first) = found else {
      return try (arguments.takesAll ? .done : interruption.endStatus).end()
    }
    if arguments.has("ack") {
      return try arguments.printAnswered(
        worker, after: first, until: deadline, interruption, reportWaiting, environment)
    }
    let handler = DeliveryHandler(
      arguments: arguments, receiver: name, interruption: interruption, deadline: deadline,
      inherited: { worker.inheritable },
      results: arguments.has("run") ? JobResults(of: queue) : nil, environment: environment)
    try arguments.handleEach(
      of: { limit in
        if let entry = try worker.nextNow() { return entry }
        if drains {
          // What failed here and is to be tried again is also left.
          while let due = worker.nextRetry {
            if let entry = try worker.nextLive(until: due) { return entry }
          }
        }
        if drains { return nil }
        guard limit > .now else { throw arguments.statusWithoutEntry(in: queue, environment) }
        reportWaiting(limit)
        return try worker.nextLive(until: limit)
      }, after: first, until: deadline, interruption,
      limit: arguments.takesAll ? .max : nil, none: drains ? .done : .deadline,
      showsSignal: true, beforeLast: worker.takesNoMore
    ) { try handler.handle($0) }
  }
  .refusing { arguments in
    if arguments.has("run") {
      if arguments.tail != nil { return "--run and a command exclude each other" }
      if let option = ["ack", "details", "format"].first(where: arguments.isGiven) {
        return "--run and --\(option) exclude each other"
      }
    }
    if arguments.has("ack") {
      if arguments.tail != nil { return "--ack and a command exclude each other" }
      if let option = ["limit", "fail-status", "drain"].first(where: arguments.isGiven) {
        return "--\(option) is not for --ack"
      }
      return arguments.conflict(of: "follow", "count")
    }
    if let problem = arguments.problemWithoutCommand("an entry") { return problem }
    if arguments.tail == nil, !arguments.has("run"),
      let option = ["limit", "jobs"].first(where: arguments.isGiven)
    {
      return "--\(option) needs a command"
    }
    if arguments.duration("limit") == .zero {
      return "--limit 0 would end each command at once; without --limit it may take any time"
    }
    if arguments.count("jobs") ?? 1 > 1, !arguments.takesAll { return "--jobs needs --follow" }
    if arguments.has("drain"), arguments.isGiven("timeout") {
      return "--drain and --timeout exclude each other: one does not wait, the other waits"
    }
    if arguments.count("jobs") ?? 1 > mostJobs { return "--jobs is at most \(mostJobs)" }
    return arguments.conflict(of: "follow", "count") ?? arguments.conflict(of: "drain", "count")
      ?? arguments.conflict(of: "follow", "drain")
  }
}

extension ParsedArguments {
  /// Prints entries, each of which another program answers on standard input.
  fileprivate func printAnswered(
    _ worker: PlainConsumer, after first: PlainEntry?, until deadline: ContinuousClock.Instant,
    _ interruption: Interruption, _ reportWaiting: (ContinuousClock.Instant) -> Void,
    _ environment: CommandEnvironment
  ) throws {
    let answers = AnsweredEntries(of: worker, self, environment)
    try answers.begin()
    reportWaiting(deadline)
    let outcome = Result {
      try handleEach(
        of: answers.next, after: first, until: deadline, interruption,
        limit: takesAll ? .max : nil, none: .done, showsSignal: true
      ) { entry in
        let line = try outputFormat.bytes(entry.envelope, of: entry.title)
        answers.add(entry)
        try environment.print(line, interruption, until: deadline)
        return .done
      }
    }
    answers.takeNoMore()
    try answers.finish(interruption)
    try outcome.get()
  }

  /// Returns the status of a command that finds no entry in its time.
  fileprivate func statusWithoutEntry(
    in queue: PlainQueue, _ environment: CommandEnvironment
  ) -> ExitStatus {
    if has("drain") { return .done }
    guard duration("timeout") == .zero else { return .deadline }
    environment.report("the queue \(queue.name.quoted) is empty")
    return .no
  }

  /// The time of one attempt; a process in the way of two is reported. On a busy machine, joining
  /// itself takes seconds.
  private static let joiningTime: Duration = .seconds(15)
  /// The time in which other processes have joined: even a command that does not wait allows it.
  private static let othersJoiningTime: Duration = .seconds(2)

  /// Joins the queue: one process at a time, and none beside a consumer that has the queue alone.
  fileprivate func join(
    _ queue: PlainQueue, until deadline: ContinuousClock.Instant, _ environment: CommandEnvironment
  ) throws -> PlainConsumer {
    let deadline = max(deadline, .now + Self.othersJoiningTime)
    var last: Int32?
    var hasReported = false
    while true {
      do {
        return try queue.work(
          until: min(deadline, .now + Self.joiningTime), attempts: attempts)
      } catch let error as WormholeError where error.code == .timedOut {
        let holder = error.holder.map { "\($0)," } ?? "another process"
        let reason = "\(holder) is its only consumer"
        guard deadline > .now else {
          throw CommandError(
            cannot: "take from \(queue.name.quoted)", because: reason, status: .inUse)
        }
        // Many that join at once are in each other's way, but each only for a moment.
        if let last, last == error.holder?.processID, !hasReported {
          environment.report("waiting to take from \(queue.name.quoted): \(reason)")
          hasReported = true
        }
        last = error.holder?.processID
      }
    }
  }
}

extension QueueConsumer {
  /// Takes the next entry if there is one now.
  fileprivate func nextNow() throws -> QueueEntry<Content>? { try nextLive(until: .now) }

  /// Takes the next entry, however many have expired before it: a look at them may outlast the deadline.
  func nextLive(until deadline: ContinuousClock.Instant) throws -> QueueEntry<Content>? {
    while true {
      if let entry = try next(until: deadline) { return entry }
      guard isSpent else { return nil }
    }
  }
}

/// The worker of this process, which the main thread ends even if another one is just joining.
private final class JoinedWorker: Sendable {
  private let state = Mutex<(worker: PlainConsumer?, isOver: Bool)>((nil, false))

  func begin(_ worker: PlainConsumer) -> PlainConsumer {
    let isOver = state.withLock { state in
      state.worker = worker
      return state.isOver
    }
    // It then takes nothing.
    if isOver { worker.close() }
    return worker
  }

  func end() {
    let worker = state.withLock { state in
      state.isOver = true
      return state.worker
    }
    worker?.close()
  }
}

/// Each is a process; a larger number is a typo.
private let mostJobs = 1_000

/// Runs this program's command line that many times at once, each as a process that takes alone;
/// returns the status of the first one that failed.
///
/// - Parameter endsWithOne: Whether the others end when one has failed.
private func runCopies(
  _ count: Int, until deadline: ContinuousClock.Instant, endsWithOne: Bool,
  _ environment: CommandEnvironment
) throws -> ExitStatus {
  let interruption = try Interruption(adopts: true)
  let program = try reporting(cannot: "find this program", Program.executablePath())
  let command = try ExternalCommand(words: [program] + argumentTexts())
  do {
    let pipe = try makePipe()
    // The standard input of each, which ends taking once it is readable.
    let end = try OneResult<Bool>()
    let copies = try (0..<count).map { _ throws(Errno) in
      RunningCopy(
        try command.start(
          variables: [CommandVariable.copy: "1"], input: end.descriptor,
          inheriting: pipe.write.rawValue))
    }
    let source = pipe.takeRead()
    try startThread(name: "wormhole.ready") { reportListening(of: count, source, environment) }
    let ended = try interruption.wait(forEndOf: copies, until: deadline) { termination in
      guard endsWithOne else { return }
      end.put(true)
      guard !interruption.isRequested else { return }
      let ending = "one of \(count) processes ended with status \(ExitStatus(termination).rawValue)"
      environment.report("\(ending); the others end after the commands that they run")
    }
    return ExitStatus(ended)
  } catch {
    throw command.error(error)
  }
}

/// Reports once that all copies wait; each then writes a byte. Blocks its thread.
private func reportListening(
  of count: Int, _ source: SharedDescriptor, _ environment: CommandEnvironment
) {
  do throws(Errno) {
    var bytes: [UInt8] = []
    while bytes.count < count {
      guard try source.descriptor.read(atMost: count, appendingTo: &bytes) > 0 else { return }
    }
    environment.reportListening(endsWithReader: false)
  } catch {
    environment.report("cannot find out when all commands wait: \(error)")
  }
}

extension QueueEntry: HandledDelivery {
  var value: PropertyListValue { payload }

  var title: String { "the entry \(id) from \(sender.quoted)" }

  var envelope: JSONObject {
    [
      "attempt": attempt, "id": id.description, "key": key, "redelivery": isRedelivery,
      "sender": sender, "sent": sent, "value": payload,
    ]
  }

  func variables(receiver: String) -> [String: String] { ["WORMHOLE_ENTRY": id.description] }

  func retryCommand(receiver: String) -> String {
    "\(ProgramName.called) queue retry \(receiver.quotedForShell) \(id.shortText)"
  }
}
