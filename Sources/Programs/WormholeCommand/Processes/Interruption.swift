import WormholeSystem
import WormholeToolkit

/// Receives the signals that would end the program: a command that has taken an item to handle
/// finishes it, or gives it back, before the program ends.
///
/// At most one exists at a time, and the main thread uses it.
final class Interruption {
  /// Whether a signal, or the starter of this process, has asked it to end.
  var isRequested: Bool { last != nil || isReleased }
  private var last: Signal?
  private var isReleased = false
  fileprivate let signals: SignalReception
  private let check: () throws -> Void

  /// The status for a wait that a signal has ended.
  var endStatus: ExitStatus { last.map { ExitStatus(.killed(signal: $0.rawValue)) } ?? .no }

  private let endsWithReader: Bool
  private let endsWithInput: Bool
  private let adopts: Bool

  /// The time between two checks when nothing happens: not every loss is announced by a signal.
  fileprivate static let interval: Duration = .seconds(60)

  /// - Parameters:
  ///   - quits: whether SIGQUIT is received, too; otherwise it ends the program at once.
  ///   - adopts: whether what its commands have left behind becomes children of this process, so that
  ///     `CommandWork.tree` finds it.
  ///   - endsWithReader: whether a wait throws `ExitStatus.brokenPipe` when no process reads
  ///     standard output any longer.
  ///   - endsWithInput: whether a wait ends once standard input is readable. So the starter of
  ///     several copies asks them to end: a signal would be passed on to their commands.
  ///   - check: throws if this process lost something while it was stopped; the current wait throws
  ///     the same.
  init(
    quits: Bool = false, adopts: Bool = false, endsWithReader: Bool = false,
    endsWithInput: Bool = false, whenContinued check: @escaping () throws -> Void = {}
  ) throws {
    self.endsWithReader = endsWithReader && Program.outputIsPipe
    self.endsWithInput = endsWithInput
    self.adopts = adopts
    signals = try reporting(
      cannot: "receive signals",
      SignalReception(
        of: [.hangUp, .interrupt, .terminate, .continue] + (quits ? [.quit] : [])
          + (adopts ? [.childEnded] : [])))
    self.check = check
    if adopts { Orphans.adopt() }
  }

  /// Waits for a call that may take long, on another thread. Nil if this process gets a signal to
  /// end first; the call's result is then dropped.
  func wait<Result: Sendable>(for call: @escaping @Sendable () throws -> Result) throws -> Result? {
    try wait { outcome in
      try start("wormhole.call") { outcome.put(Swift.Result { try call() }) }
      return nil
    }
  }

  /// Waits for a call that writes to standard output, and so itself notices when no process reads
  /// it. Nil if this process gets a signal to end first.
  ///
  /// - Throws: `ExitStatus.deadline` when the deadline has passed.
  func wait(
    until deadline: ContinuousClock.Instant, forOutput call: @escaping @Sendable () throws -> Void
  ) throws -> Void? {
    try wait(until: deadline, endsWithReader: false) { outcome in
      try start("wormhole.print") { outcome.put(Swift.Result { try call() }) }
      return nil
    }
  }

  /// Waits for a call that may take long; it is cancelled when this process gets a signal to end.
  func wait<Result: Sendable>(
    for call: @escaping @Sendable () async throws -> Result
  ) throws -> Result? {
    try wait { outcome in
      try ThreadShortage.ruleOut()
      let task = Task {
        do { outcome.put(.success(try await call())) } catch { outcome.put(.failure(error)) }
      }
      return { task.cancel() }
    }
  }

  private func start(
    _ name: String, _ body: @escaping @Sendable () -> Void
  ) throws(ThreadShortage) {
    do throws(Errno) { try startThread(name: name, body) } catch {
      throw ThreadShortage(error: error)
    }
  }

  /// - Returns: False if a signal to end has come first.
  func pause(_ time: Duration) throws -> Bool {
    do {
      let _: Void? = try wait(until: .now + time) { _ in nil }
      return false
    } catch let status as ExitStatus where status == .deadline {
      return true
    }
  }

  func waitForEnd() throws {
    _ = try wait { (_: OneResult<Swift.Result<Void, any Error>>) in nil }
  }

  private func wait<Result: Sendable>(
    until deadline: ContinuousClock.Instant? = nil, endsWithReader: Bool? = nil,
    _ begin: (OneResult<Swift.Result<Result, any Error>>) throws -> (() -> Void)?
  ) throws -> Result? {
    // Here, because a call that returns at once leaves no time to notice it below.
    if endsWithInput, try waitReadable([0], until: .now)[0] { isReleased = true }
    guard !isRequested else { return nil }
    let endsWithReader = endsWithReader ?? self.endsWithReader
    let outcome = try OneResult<Swift.Result<Result, any Error>>()
    let cancel = try begin(outcome)
    while true {
      // poll(2) does not wait for the number -1.
      let descriptors = [
        outcome.descriptor, signals.descriptor, endsWithReader ? 1 : -1, endsWithInput ? 0 : -1,
      ]
      let next = ContinuousClock.now + Self.interval
      let ready = try waitReadable(descriptors, until: deadline.map { min($0, next) } ?? next)
      if ready[0], let result = outcome.look() { return try result.get() }
      if endsWithReader, ready[2] {
        cancel?()
        throw ExitStatus.brokenPipe
      }
      _ = try takeSignals()
      if ready[3] { isReleased = true }
      if isRequested {
        cancel?()
        return nil
      }
      if let deadline, .now >= deadline {
        cancel?()
        throw ExitStatus.deadline
      }
      try check()
    }
  }

  /// Takes the signals that have come, and notes the last one that asks this process to end; reaps
  /// orphans.
  ///
  /// - Parameter own: children whose end is waited for.
  fileprivate func takeSignals(
    except own: [Int32] = []
  ) throws(Errno) -> (received: [SignalReception.Received], hasOrphans: Bool) {
    let received = try signals.take().filter { $0.signal != .childEnded }
    last = received.last { $0.signal != .continue }?.signal ?? last
    return (received, adopts ? try Orphans.reap(except: own) : false)
  }

  /// Between two steps of work: throws the status that a signal would have ended this process with,
  /// if there was one.
  func endIfInterrupted() throws {
    _ = try takeSignals()
    if isRequested { throw endStatus }
  }
}

/// A process that is one of several.
final class RunningCopy {
  fileprivate let process: ChildProcess

  init(_ process: consuming ChildProcess) { self.process = process }
}

extension Interruption {
  /// Waits for the end of several programs, and passes on to each the signals that would end this
  /// process. Returns how the first failure ended; without one, whether the time of one had passed.
  ///
  /// - Parameters:
  ///   - deadline: The end of each one's time; a timeout status before then is that of a command.
  ///   - whenOneFails: asks the others to end, so that fewer than were asked for never continue for
  ///     long: the starter of this process then starts all of them again.
  func wait(
    forEndOf copies: [RunningCopy], until deadline: ContinuousClock.Instant,
    whenOneFails: (Termination) -> Void
  ) throws(Errno) -> Termination {
    var running = copies
    var result = Termination.exited(0)
    var hasFailed = false
    while !running.isEmpty {
      let ready = try waitReadable(
        running.map { $0.process.descriptor } + [signals.descriptor], until: .now + Self.interval)
      // First, because a signal from the terminal ends the copies, too.
      for received in try takeSignals(except: copies.map { $0.process.processID }).received
      where received.isToBePassed {
        for copy in running {
          _ = try tolerating([.noSuchProcess], copy.process.send(received.signal))
        }
      }
      var rest: [RunningCopy] = []
      for (copy, isReady) in zip(running, ready) {
        guard isReady, let termination = try copy.process.wait(until: .now) else {
          rest.append(copy)
          continue
        }
        guard termination != .exited(0), !hasFailed else { continue }
        result = termination
        // One with nothing left to do leaves the rest to the others.
        let hasEndedInTime = [ExitStatus.deadline, .no].contains(ExitStatus(termination))
        if hasEndedInTime, .now >= deadline { continue }
        hasFailed = true
        whenOneFails(termination)
      }
      running = rest
    }
    return result
  }
}

extension SignalReception.Received {
  // The terminal sends its signals to the program, too, and so does the shell that continues it.
  // The end of the terminal reaches only the first process of the session.
  fileprivate var isToBePassed: Bool {
    (isFromProcess || signal == .hangUp) && signal != .continue
  }
}

/// What a command does its work with.
enum CommandWork {
  /// With its first process; those that it leaves behind do not count.
  case first
  /// With all that it has started, apart from a daemon, which has its own session and whose starter
  /// has ended.
  case tree
  /// Until it is asked to end, with those that have inherited a file, as with flock(1); then with
  /// these and the tree.
  case heirs(FileStatus)

  /// - Parameters:
  ///   - command: the first process.
  ///   - isAsked: whether it was asked to end.
  fileprivate func processes(
    of command: Int32, isAsked: Bool
  ) throws(Errno) -> [ProcessStatus] {
    let tree = try ProcessTree.current()
    let first = tree.all.filter { $0.processID == command }
    switch self {
    case .first: return first
    case .tree: return tree.work(of: first, and: [.current])
    case .heirs(let file):
      let heirs = try inheritors(of: file)
      return tree.work(of: first + heirs, and: isAsked ? [.current] : [])
    }
  }
}

extension ChildProcess {
  /// The time between SIGTERM and SIGKILL for a program that has reached its limit.
  private static let killDelay: Duration = .seconds(10)
  /// The longest time between two looks at what a program has left behind: most ends are events,
  /// but a process that detaches itself is not.
  private static let lookInterval: Duration = .milliseconds(500)
  /// The time between two tries of a step that has failed.
  private static let failureInterval: Duration = .milliseconds(100)

  /// Waits for the end of this program, and of the work that it has left to others. Without `limit`
  /// it may take any time: its user decides.
  ///
  /// - Returns: how it ended; `isLate` is true if it was asked to end because of `limit`.
  /// - Throws: the first error of a step of waiting, but only once the program has ended.
  /// - Parameters:
  ///   - interruption: passes on to the work the signals that would end this process; without it,
  ///     one ends this process.
  ///   - work: what is waited for; more than the first process needs an interruption that adopts.
  ///   - pipe: the program's output; nil if it is not collected.
  ///   - mostOutput: how many bytes of it are kept, the last ones; nil for all.
  ///   - unwanted: once it is readable, the work gets SIGTERM.
  ///   - role: without it the work may not continue: it gets SIGTERM, and is killed later.
  ///   - limit: when it has passed, the work gets SIGTERM, and is killed `killDelay` later.
  ///   - mustEnd: called after each event, and once a minute; true if SIGTERM should be sent.
  func waitForEnd(
    _ interruption: Interruption?, work: CommandWork = .first,
    collecting pipe: SharedDescriptor? = nil, keepingLast mostOutput: Int? = nil,
    unwanted: OneResult<Bool>? = nil,
    under role: RoleWatch? = nil, until limit: ContinuousClock.Instant? = nil,
    mustEnd: () -> Bool = { false }
  ) throws(Errno) -> (termination: Termination, output: [UInt8], isLate: Bool) {
    var output = CollectedOutput(pipe, keepingLast: mostOutput)
    var asked: ContinuousClock.Instant?
    var isKilled = false
    var ended: Termination?
    var failure: Errno?
    var signals = WorkSignals(work: work, command: processID)
    var pause: Duration = .milliseconds(5)
    waiting: while true {
      do throws(Errno) {
        let wish = asked == nil ? unwanted?.descriptor ?? role?.descriptor : nil
        // A program that has ended stays readable.
        let own = ended == nil ? descriptor : nil
        // A missing one has the number -1, for which poll(2) does not wait.
        let descriptors = [own, interruption?.signals.descriptor, output.descriptor, wish]
        var next = ContinuousClock.now + Interruption.interval
        // After the first signal, the instant of the second one.
        let end = asked.flatMap { role?.deadline(askedAt: $0) ?? limit.map { $0 + Self.killDelay } }
        if let end = end ?? limit, !isKilled { next = min(next, end) }
        if ended != nil {
          pause = min(pause * 2, Self.lookInterval)
          next = min(next, .now + pause)
        }
        let ready = try waitReadable(descriptors.map { $0 ?? -1 }, until: next)
        if ready[0], let termination = try wait(until: .now) { ended = termination }
        let news = try interruption?.takeSignals(except: ended == nil ? [processID] : [])
        for received in news?.received ?? [] {
          if received.signal == .continue { role?.checkAfterStop() }
          if received.isToBePassed { try signals.send(received.signal, through: self) }
        }
        if let ended {
          // Without other children it has left nothing behind.
          var isOver = news?.hasOrphans != true
          if !isOver { isOver = try signals.isOver(after: ended) }
          if isOver {
            try output.readRest()
            // A signal from the terminal reaches both, and the program may be the first to end.
            _ = try interruption?.takeSignals()
            break waiting
          }
        }
        if ready[2] { try output.read() }
        if asked == nil,
          unwanted?.look() != nil || role?.isLost() == true || mustEnd()
            || limit.map({ .now >= $0 }) == true
        {
          try signals.send(.terminate, through: self)
          // What was stopped with us ends only when it continues.
          try signals.send(.continue, through: self)
          asked = .now
        }
        // Even if both instants have passed: this process was stopped, or had no processor.
        if let end, ContinuousClock.now >= end {
          try signals.send(.kill, through: self)
          isKilled = true
        }
      } catch {
        // As long as it runs, none may begin in its place. After its end, only a shortage passes.
        guard ended == nil ? error != .noChild : error.isShortage else { throw failure ?? error }
        failure = failure ?? error
        pauseThread(Self.failureInterval)
      }
    }
    guard let ended, failure == nil else { throw failure ?? .noChild }
    return (ended, output.bytes, limit != nil && asked != nil)
  }
}

/// The signals that one command's work has received.
private struct WorkSignals {
  let work: CommandWork
  let command: Int32
  private var last: Signal?
  /// The processes that have received it.
  private var reached: Set<ProcessIdentity> = []

  init(work: CommandWork, command: Int32) {
    self.work = work
    self.command = command
  }

  mutating func send(_ signal: Signal, through child: borrowing ChildProcess) throws(Errno) {
    if signal != .continue { last = signal }
    // Before the signal: what the command starts because of it, as in a trap, does not get it.
    let processes = Result { () throws(Errno) in try work.processes(of: command, isAsked: true) }
    // The command may have changed its user; it then ends by itself.
    _ = try tolerating([.noSuchProcess, .notPermitted], child.send(signal))
    for process in try processes.get() where process.processID != command {
      reached.insert(process.identity)
      _ = try process.send(signal, tolerating: [.notPermitted])
    }
  }

  /// Whether nothing is left of the work after the end of the command.
  mutating func isOver(after end: Termination) throws(Errno) -> Bool {
    var isAsked = last != nil
    if case .killed = end { isAsked = true }
    if case .first = work { return true }
    let rest = try work.processes(of: command, isAsked: isAsked)
    guard let last else { return rest.isEmpty }
    // A process whose starter got the signal just after it had started this one. A process that
    // still has its starter may be what the starter does in order to end.
    for process in rest where last == .kill || process.isChild {
      guard reached.insert(process.identity).inserted else { continue }
      _ = try process.send(last, tolerating: [.notPermitted])
    }
    return rest.isEmpty
  }
}
