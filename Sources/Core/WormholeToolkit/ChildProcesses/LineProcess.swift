import Glibc
import Synchronization
package import WormholeSystem

/// A program that receives lines and whose output is read line by line. It is killed when this
/// value is released.
///
/// The output is read on demand: a program that prints more than a pipe holds waits for that.
/// Thread-safe; one thread at a time reads, and one writes.
package final class LineProcess: Sendable {
  private let child: ChildProcess
  private let input: SharedDescriptor
  private let output: SharedDescriptor
  private let pending = Mutex<[UInt8]>([])
  private let writing = Mutex(())
  private let hasEnded = Atomic(false)

  /// The program did not do what the caller expected.
  package struct Failure: Error, CustomStringConvertible {
    /// A sentence that says what failed.
    package let description: String

    package init(description: String) { self.description = description }
  }

  /// Starts the program.
  ///
  /// - Parameters:
  ///   - environment: The whole environment, as "NAME=value".
  ///   - readsErrors: Whether its standard error is also read; otherwise it shares ours.
  ///   - endsWithThread: Whether it is killed when the calling thread ends, at the latest with this
  ///     process.
  package init(
    _ program: String, _ arguments: [String], environment: [String] = Program.environment,
    readsErrors: Bool = true, endsWithThread: Bool = false
  ) throws {
    let lines = try makePipe()
    let answers = try makePipe()
    child = try ChildProcess(
      program, arguments, environment: environment, input: lines.read.rawValue,
      output: answers.write.rawValue, errors: readsErrors ? answers.write.rawValue : 2,
      endsWithParent: endsWithThread)
    input = lines.takeWrite()
    output = answers.takeRead()
  }

  deinit {
    // It fails if the program has ended already, which is the aim.
    try? end()
  }

  package var processID: Int32 { child.processID }

  /// Writes a line to the program's standard input, as `type` does.
  package func tell(
    _ line: String, until deadline: ContinuousClock.Instant = .now + .seconds(10)
  ) throws(Errno) {
    try type(line + "\n", until: deadline)
  }

  /// Writes a text to the program's standard input.
  ///
  /// - Throws: `.timedOut` if the program has not read enough of it by the deadline, so that only a
  ///   part is written; `.brokenPipe` if the program no longer reads it.
  package func type(
    _ text: String, until deadline: ContinuousClock.Instant = .now + .seconds(10)
  ) throws(Errno) {
    let result = writing.withLock { _ in
      withoutBrokenPipeSignal {
        Result { () throws(Errno) in try write(Array(text.utf8), until: deadline) }
      }
    }
    try result.get()
  }

  private func write(
    _ bytes: [UInt8], until deadline: ContinuousClock.Instant
  ) throws(Errno) {
    let descriptor = input.descriptor.rawValue
    // A pipe that is writable takes this many bytes without blocking.
    for start in stride(from: 0, to: bytes.count, by: Int(PIPE_BUF)) {
      guard try waitWritable(descriptor, until: deadline) else { throw .timedOut }
      try Program.write(Array(bytes[start...].prefix(Int(PIPE_BUF))), to: descriptor)
    }
  }

  /// Returns the next line that the program prints, on either stream.
  ///
  /// - Throws: `Failure` when there is none before the deadline, or the program has ended.
  package func line(until deadline: ContinuousClock.Instant) throws -> String {
    guard let line = try lineIfAny(until: deadline) else {
      throw Failure(description: "process \(processID) printed nothing in time")
    }
    return line
  }

  /// Returns the next line that the program prints, or nil if there is none before the deadline.
  ///
  /// - Throws: `Failure` when the program has ended.
  package func lineIfAny(until deadline: ContinuousClock.Instant) throws -> String? {
    try read(until: deadline) { pending in
      guard let end = pending.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      defer { pending.removeSubrange(...end) }
      return String(decoding: pending[..<end], as: UTF8.self)
    }
  }

  /// Reads until a piece can be taken from what was read, and returns the piece.
  ///
  /// - Returns: nil if there is none before the deadline.
  /// - Throws: `Failure` when the program has ended.
  package func read(
    until deadline: ContinuousClock.Instant, _ take: (inout [UInt8]) -> String?
  ) throws -> String? {
    let descriptor = output.descriptor.rawValue
    while true {
      if let piece = pending.withLock({ take(&$0) }) { return piece }
      let ready = try waitReadable([descriptor, child.descriptor], until: deadline)
      guard ready[0] || ready[1] else { return nil }
      // A program that it has started may have the output open for longer.
      guard ready[0] else { throw Failure(description: "process \(processID) has ended") }
      let bytes = try Program.read(from: descriptor, maximumBytes: 65_536)
      guard !bytes.isEmpty else { throw Failure(description: "process \(processID) has ended") }
      pending.withLock { $0 += bytes }
    }
  }

  /// Waits until the program is suspended, as /proc reports.
  package func waitUntilStopped(until deadline: ContinuousClock.Instant) throws {
    while let status = ProcessStatus.of(processID), !status.isDead {
      if status.isStopped { return }
      guard ContinuousClock.now < deadline else {
        throw Failure(description: "process \(processID) was not suspended in time")
      }
      pauseThread(.milliseconds(1))
    }
    let said = try line(until: deadline)
    throw Failure(description: "process \(processID) ended instead of being suspended: \(said)")
  }

  package func wait(until deadline: ContinuousClock.Instant) throws -> Termination {
    guard let termination = try termination(until: deadline) else {
      throw Failure(description: "process \(processID) did not end in time")
    }
    return termination
  }

  /// Returns how the program ended, or nil if it still runs at the deadline.
  package func termination(until deadline: ContinuousClock.Instant) throws -> Termination? {
    let termination = try child.wait(until: deadline)
    if termination != nil { hasEnded.store(true, ordering: .releasing) }
    return termination
  }

  package func send(_ signal: Signal) throws { try child.send(signal) }

  /// Kills the program, whatever it is doing.
  package func end() throws {
    guard !hasEnded.load(ordering: .acquiring) else { return }
    try send(.kill)
    _ = try wait(until: .now + .seconds(5))
  }
}
