import AppGroup
import Dispatch
import Synchronization
import SystemCalls

/// The signals that end a program, received instead: whoever has taken something to handle finishes it,
/// or gives it back, before the program ends.
///
/// One at a time, for the main thread. SIGQUIT still ends the program at once.
final class Interruption {
  /// Whether this process was told to end.
  private(set) var isRequested = false
  private let signals: SignalReception
  /// Called when the process goes on after it was stopped, and now and then.
  private let look: () throws -> Void

  /// Whether a wait ends when nobody reads standard output any more.
  private let endsWithReader: Bool

  /// How long nobody looks when nothing happens.
  private static let interval: Duration = .seconds(60)

  /// - Parameters:
  ///   - endsWithReader: whether a wait throws `OutputIsClosed` when nobody reads standard output any
  ///     more.
  ///   - look: whether all is as it was before the process was stopped; what it throws, the wait that is
  ///     under way throws.
  init(
    endsWithReader: Bool = false, whenContinued look: @escaping () throws -> Void = {}
  ) throws {
    self.endsWithReader = endsWithReader && Program.outputIsPipe
    do throws(Errno) {
      signals = try SignalReception(of: [.hangUp, .interrupt, .terminate, .continue])
    } catch {
      throw CommandError(
        verb: "receive", object: "signals", reason: "\(error)", status: .inputOutput)
    }
    self.look = look
  }

  /// Waits for a call that may take long, on another thread.
  ///
  /// - Returns: nil when this process is told to end first. Nobody hears the call's result then.
  func wait<Result: Sendable>(
    for call: @escaping @Sendable () throws -> Result
  ) throws -> Result? {
    try wait { outcome in
      DispatchQueue(label: "wormhole.call").async { outcome.put(Swift.Result { try call() }) }
      return nil
    }
  }

  /// Waits for a call that may take long; it is cancelled when this process is told to end.
  func wait<Result: Sendable>(
    for call: @escaping @Sendable () async throws -> Result
  ) throws -> Result? {
    try wait { outcome in
      let task = Task {
        do { outcome.put(.success(try await call())) } catch { outcome.put(.failure(error)) }
      }
      return { task.cancel() }
    }
  }

  private func wait<Result: Sendable>(
    _ begin: (Outcome<Result>) -> (() -> Void)?
  ) throws -> Result? {
    guard !isRequested else { return nil }
    let outcome = try Outcome<Result>()
    let cancel = begin(outcome)
    while true {
      let descriptors = [outcome.counter.descriptor.rawValue, signals.descriptor]
      let ready = try waitReadable(
        endsWithReader ? descriptors + [1] : descriptors, until: .now + Self.interval)
      if ready[0], let result = outcome.take() { return try result.get() }
      if endsWithReader, ready[2] {
        cancel?()
        throw OutputIsClosed()
      }
      for received in try signals.take() where received.signal != .continue { isRequested = true }
      if isRequested {
        cancel?()
        return nil
      }
      try look()
    }
  }

  /// What a call on another thread came to.
  private final class Outcome<Result: Sendable>: Sendable {
    let counter: SharedDescriptor
    private let result = Mutex<Swift.Result<Result, any Error>?>(nil)

    init() throws {
      counter = SharedDescriptor(try FileDescriptor.wakeUpCounter())
    }

    func put(_ value: Swift.Result<Result, any Error>) {
      result.withLock { $0 = value }
      do {
        try counter.descriptor.raiseCounter()
      } catch {
        // Only a counter at its maximum cannot be raised, and that can be read already.
      }
    }

    func take() -> Swift.Result<Result, any Error>? { result.withLock { $0 } }
  }
}

extension Interruption {
  /// Runs another program to its end, which comes with this process's at the latest, and passes on to it what is sent to this process to end it.
  ///
  /// - Parameters:
  ///   - input: its standard input.
  ///   - variables: added to its environment, as "NAME=value".
  ///   - collectsOutput: whether its standard output is handed back; otherwise it is ours.
  ///   - unwanted: can be read when nobody wants its output any more; it is told to end then (SIGTERM).
  /// - Throws: `CommandError` when it cannot be started.
  func run(
    _ command: ExternalCommand, input: [UInt8], variables: [String], collectsOutput: Bool = false,
    unwanted: SharedDescriptor? = nil
  ) throws -> ExternalCommand.Outcome {
    do throws(Errno) {
      let standardInput = try FileDescriptor.memoryFile(name: "message", content: input)
      let pipe = try makePipe()
      let child = try command.start(
        variables: variables, input: standardInput.rawValue,
        output: collectsOutput ? pipe.write.rawValue : 1)
      var output = PipedOutput(pipe.takeRead())
      if !collectsOutput { output.close() }
      return ExternalCommand.Outcome(
        termination: try end(of: child, &output, unwanted), output: output.bytes)
    } catch {
      throw command.error(error)
    }
  }

  private func end(
    of child: borrowing ChildProcess, _ output: inout PipedOutput, _ unwanted: SharedDescriptor?
  ) throws(Errno) -> Termination {
    var unwanted = unwanted
    while true {
      var descriptors = [child.descriptor, signals.descriptor]
      if let pipe = output.descriptor { descriptors.append(pipe) }
      if let unwanted { descriptors.append(unwanted.descriptor.rawValue) }
      let ready = try waitReadable(descriptors, until: .now + Self.interval)
      if ready[0], let termination = try child.wait(until: .now) {
        try output.readWhatIsThere()
        return termination
      }
      for received in try signals.take() where received.signal != .continue {
        isRequested = true
        try child.pass(received)
      }
      if output.descriptor != nil, ready[2] { try output.read() }
      if let last = ready.last, last, unwanted != nil {
        try child.askToEnd()
        unwanted = nil
      }
    }
  }
}

/// What another program prints into a pipe.
private struct PipedOutput {
  private(set) var bytes: [UInt8] = []
  private var pipe: SharedDescriptor?

  init(_ pipe: SharedDescriptor) { self.pipe = pipe }

  /// Can be read when it has printed; nil when it has closed its end.
  var descriptor: Int32? { pipe?.descriptor.rawValue }

  mutating func close() { pipe = nil }

  mutating func read() throws(Errno) {
    guard let descriptor else { return }
    let chunk = try Program.read(from: descriptor, maximumBytes: 64 << 10)
    bytes += chunk
    // A program that prints without end gets SIGPIPE.
    if chunk.isEmpty || bytes.count > Message.maximumTextBytes { close() }
  }

  /// The rest of one that has ended; what its own children may still print is not waited for.
  mutating func readWhatIsThere() throws(Errno) {
    while let descriptor, try waitReadable([descriptor], until: .now)[0] { try read() }
  }
}

extension ChildProcess {
  /// Passes a signal on that this process received.
  func pass(_ received: SignalReception.Received) throws(Errno) {
    // What a key at the terminal sent, the program has got too; so has it been continued.
    guard received.isFromProcess, received.signal != .continue else { return }
    try send(received.signal)
  }

  func askToEnd() throws(Errno) {
    try send(.terminate)
    // One that was stopped with us ends only when it goes on.
    try send(.continue)
  }
}
