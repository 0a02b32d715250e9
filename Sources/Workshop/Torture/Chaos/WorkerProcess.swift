import SystemCalls

/// A worker as the main process sees it.
final class WorkerProcess {
  let slot: Int
  let life: Int
  let processID: Int32
  /// The time to continue it; nil while it is not known to be stopped.
  var continuation: ContinuousClock.Instant?
  private let child: ChildProcess
  private let input: SharedDescriptor
  private let output: SharedDescriptor
  private var pending: [UInt8] = []

  init(_ arguments: WorkerArguments) throws {
    slot = arguments.slot
    life = arguments.life
    let toChild = try makePipe()
    let fromChild = try makePipe()
    child = try ChildProcess(
      Program.executablePath(), ["worker"] + arguments.words, input: toChild.read.rawValue,
      output: fromChild.write.rawValue)
    processID = child.processID
    (input, output) = Self.ends(toChild, fromChild)
  }

  private static func ends(
    _ toChild: consuming PipeEnds, _ fromChild: consuming PipeEnds
  ) -> (SharedDescriptor, SharedDescriptor) {
    (toChild.takeWrite(), fromChild.takeRead())
  }

  func send(_ signal: Signal) throws(Errno) { try child.send(signal) }

  /// Returns how it ended, or nil while it lives.
  func end(until deadline: ContinuousClock.Instant = .now) throws(Errno) -> Termination? {
    try child.wait(until: deadline)
  }

  var isStopped: Bool { ProcessStatus.of(processID)?.isStopped == true }

  func tell(_ line: String) throws(Errno) { try input.descriptor.writeAll(Array(line.utf8)) }

  /// Returns its next line, or nil if there is none before the deadline or it has ended.
  func line(until deadline: ContinuousClock.Instant) throws(Errno) -> String? {
    while true {
      if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        defer { pending.removeSubrange(...end) }
        return String(decoding: pending[..<end], as: UTF8.self)
      }
      guard try waitReadable([output.descriptor.rawValue], until: deadline)[0] else { return nil }
      let bytes = try Program.read(from: output.descriptor.rawValue, maximumBytes: 65_536)
      if bytes.isEmpty { return nil }
      pending += bytes
    }
  }
}
