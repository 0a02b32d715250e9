import SystemCalls

/// One more process of this very program, whose output is read line by line.
final class DemoProcess {
  private let process: ChildBox
  private let output: SharedDescriptor
  private var pending: [UInt8] = []

  /// A class can own what must not be copied.
  private final class ChildBox {
    let child: ChildProcess
    init(_ child: consuming ChildProcess) { self.child = child }
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// - Parameter variables: what its environment has besides ours.
  init(
    _ program: String, _ arguments: [String], variables: [String] = []
  ) throws {
    let environment = Program.environment(with: variables)
      .filter { !$0.hasPrefix("WORMHOLE_") }
    let pipe = try makePipe()
    process = ChildBox(
      try ChildProcess(
        program, arguments, environment: environment, output: pipe.write.rawValue,
        errors: pipe.write.rawValue))
    output = pipe.takeRead()
  }

  var processID: Int32 { process.child.processID }

  /// The next line that it prints, on either stream.
  func line(until deadline: ContinuousClock.Instant) throws -> String {
    while true {
      if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        defer { pending.removeSubrange(...end) }
        return String(decoding: pending[..<end], as: UTF8.self)
      }
      guard try waitReadable([output.descriptor.rawValue], until: deadline)[0] else {
        throw Failure(description: "process \(processID) printed nothing in time")
      }
      let bytes = try Program.read(from: output.descriptor.rawValue, maximumBytes: 65_536)
      guard !bytes.isEmpty else {
        throw Failure(description: "process \(processID) has ended")
      }
      pending += bytes
    }
  }

  /// Waits until it is suspended, as /proc tells.
  func waitUntilStopped(until deadline: ContinuousClock.Instant) throws {
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

  func wait(until deadline: ContinuousClock.Instant) throws -> Termination {
    guard let termination = try process.child.wait(until: deadline) else {
      throw Failure(description: "process \(processID) did not end in time")
    }
    hasEnded = true
    return termination
  }

  private var hasEnded = false

  func send(_ signal: Signal) throws { try process.child.send(signal) }

  /// Ends it, whatever it is doing.
  func end() throws {
    guard !hasEnded else { return }
    try send(.kill)
    _ = try wait(until: .now + .seconds(5))
  }
}
