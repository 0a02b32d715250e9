import Synchronization
import Wormhole
import WormholeEtcd
package import WormholeSystem
package import WormholeToolkit

/// Another process that executes a test's commands, one per line: `Tests/Support/WormholeParticipant`.
///
/// Each line is a gate: the test continues when the answer has arrived, so a schedule of several
/// processes is executed exactly as written.
package final class Participant: Sendable {
  package let processID: Int32
  private let child: ChildBox
  private let input: SharedDescriptor
  private let output: SharedDescriptor
  private let pending = Mutex<[UInt8]>([])

  private final class ChildBox: Sendable {
    let process: ChildProcess
    init(_ process: consuming ChildProcess) { self.process = process }
  }

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Starts a participant on a container. Its temporary files go with the run.
  ///
  /// - Parameter container: The directory of a test. On etcd it stands for the test's container there,
  ///   and the participant has a directory of its own beside it, as on another machine. Or "group:"
  ///   and a group, which the environment leads to: see `TemporaryDirectory.groups`.
  package convenience init(_ container: String, environment: [String] = []) throws {
    let isGroup = container.hasPrefix("group:")
    let location = isGroup ? nil : try TestEngine.current.location(of: container)
    // What a killed one leaves there goes with the run.
    let own = try location == nil ? TemporaryDirectory.ofRun() : container
    let state = ["XDG_STATE_HOME=\(own)/state"]
    let isSet = environment.contains { $0.hasPrefix("TMPDIR=") }
    let temporary = isSet ? [] : ["TMPDIR=\(try TemporaryDirectory.ofRun())"]
    try self.init(
      program: BuiltProgram.path("participant"), [location?.description ?? container],
      environment: environment + state + temporary)
  }

  /// Starts any program that answers each line with one line.
  package init(program: String, _ arguments: [String], environment: [String] = []) throws {
    let toChild = try makePipe()
    let fromChild = try makePipe()
    // The runtime's crash reporter is a process of its own. If the crashing process is killed meanwhile, it
    // waits forever, and keeps the output of the whole test run open.
    let environment = environment + ["SWIFT_BACKTRACE=enable=no"]
    // If a name occurs twice, getenv(3) finds the first value.
    let names = environment.map { $0.prefix { $0 != "=" } + "=" }
    let process = try ChildProcess(
      program, arguments,
      environment: environment
        + Program.environment.filter { old in !names.contains { old.hasPrefix($0) } },
      input: toChild.read.rawValue, output: fromChild.write.rawValue)
    processID = process.processID
    child = ChildBox(process)
    (input, output) = Self.ends(toChild, fromChild)
  }

  private static func ends(
    _ toChild: consuming PipeEnds, _ fromChild: consuming PipeEnds
  ) -> (SharedDescriptor, SharedDescriptor) {
    (toChild.takeWrite(), fromChild.takeRead())
  }

  deinit {
    do {
      try child.process.send(.kill)
      _ = try child.process.wait(until: soon)
    } catch {
      // It has ended already, which is the aim.
      return
    }
  }

  /// Sends a line without waiting for the answer.
  package func tell(_ line: String) throws {
    let written = withoutBrokenPipeSignal {
      Result { () throws(Errno) in try input.descriptor.writeAll(Array((line + "\n").utf8)) }
    }
    if case .failure(.brokenPipe) = written {
      throw Failure(description: "process \(processID) has ended")
    }
    try written.get()
  }

  /// Returns the next line that it prints.
  package func answer(within limit: Duration = testPatience) throws -> String {
    let deadline = ContinuousClock.now + limit
    while true {
      if let line = takeLine() { return line }
      guard try waitReadable([output.descriptor.rawValue], until: deadline)[0] else {
        throw Failure(description: "process \(processID) did not answer within \(limit)")
      }
      guard try receive() else { throw Failure(description: "process \(processID) has ended") }
    }
  }

  /// Executes a command that kills it before one of its calls, if it makes so many.
  ///
  /// - Parameter expected: The answer of a command that is done; nil for any.
  /// - Returns: Whether it was killed; false if the command was done.
  /// - Throws: `Failure` if it answered anything else, or ended in another way.
  package func dies(
    of command: String, answering expected: String? = "done", within limit: Duration = testPatience
  ) throws -> Bool {
    try tell(command)
    let answer: String
    do {
      answer = try self.answer(within: limit)
    } catch let failure as Failure {
      let end = try wait()
      guard end == .killed(signal: 9) else {
        throw Failure(description: "\(command): \(failure); \(end)")
      }
      return true
    }
    guard answer == expected ?? answer else {
      throw Failure(description: "\(command): \(answer)")
    }
    return false
  }

  /// Executes a command that stops it before one of its calls, if it makes so many.
  ///
  /// - Returns: Whether it is stopped; otherwise the answer remains to be read.
  package func stops(in command: String) throws -> Bool {
    try tell(command)
    return try !hasAnswer()
  }

  /// Returns how many system calls it makes for a command.
  package func calls(of command: String) throws -> Int {
    let answer = try ask("calls " + command)
    guard let calls = Int(answer) else { throw Failure(description: "\(command): \(answer)") }
    return calls
  }

  /// Waits until it has answered, is stopped, or has ended.
  ///
  /// - Returns: Whether it has answered; the answer remains to be read.
  package func hasAnswer() throws -> Bool {
    var isWithout = false
    try eventually("process \(processID) answers, is stopped or ends") {
      while try waitReadable([output.descriptor.rawValue], until: .now)[0] {
        guard try receive() else {
          isWithout = true
          return true
        }
        if pending.withLock({ $0.contains(UInt8(ascii: "\n")) }) { return true }
      }
      isWithout = ProcessStatus.of(processID)?.isStopped == true
      return isWithout
    }
    return !isWithout
  }

  /// Whether it has answered by now; the answer remains to be read.
  package func hasAnswered() throws -> Bool {
    while try waitReadable([output.descriptor.rawValue], until: .now)[0] {
      guard try receive() else { break }
    }
    return pending.withLock { $0.contains(UInt8(ascii: "\n")) }
  }

  /// - Returns: False if the process has ended.
  private func receive() throws -> Bool {
    let bytes = try Program.read(from: output.descriptor.rawValue, maximumBytes: 65_536)
    pending.withLock { $0 += bytes }
    return !bytes.isEmpty
  }

  private func takeLine() -> String? {
    pending.withLock { pending in
      guard let end = pending.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      defer { pending.removeSubrange(...end) }
      return String(decoding: pending[..<end], as: UTF8.self)
    }
  }

  /// Sends a line and waits for the answer.
  package func ask(_ line: String, within limit: Duration = testPatience) throws -> String {
    try tell(line)
    return try answer(within: limit)
  }

  /// Sends a signal.
  package func send(_ signal: Signal) throws { try child.process.send(signal) }

  /// Waits until the process is stopped, as /proc reports.
  package func waitUntilStopped() throws {
    try eventually("process \(processID) is stopped") {
      ProcessStatus.of(processID)?.isStopped == true
    }
  }

  /// Kills it, and waits until it and its open files are gone.
  package func end() throws {
    try send(.kill)
    _ = try wait()
  }

  /// Waits for its end.
  package func wait(within limit: Duration = testPatience) throws -> Termination {
    guard let end = try child.process.wait(until: .now + limit) else {
      throw Failure(description: "process \(processID) did not end within \(limit)")
    }
    return end
  }
}
