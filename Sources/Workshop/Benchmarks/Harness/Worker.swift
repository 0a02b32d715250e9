import SystemCalls

/// A second process of this program that executes one command per line. It ends when its pipe is
/// closed, so at the latest with this process.
final class Worker {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private let process: ChildProcess
  private let input: SharedDescriptor
  private let output: SharedDescriptor
  private var pending: [UInt8] = []
  private let kind: String

  /// Starts a worker and waits until it is ready.
  init(_ kind: WorkerMode.Kind, _ arguments: [String]) throws {
    self.kind = kind.rawValue
    let toChild = try makePipe()
    let fromChild = try makePipe()
    process = try ChildProcess(
      Program.executablePath(), ["worker", kind.rawValue] + arguments,
      input: toChild.read.rawValue, output: fromChild.write.rawValue)
    input = toChild.takeWrite()
    output = fromChild.takeRead()
    _ = try answer()
  }

  func tell(_ line: String) throws(Errno) {
    try input.descriptor.writeAll(Array((line + "\n").utf8))
  }

  func answer() throws -> String {
    let deadline = ContinuousClock.now + .seconds(120)
    while true {
      if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        defer { pending.removeSubrange(...end) }
        return String(decoding: pending[..<end], as: UTF8.self)
      }
      guard try waitReadable([output.descriptor.rawValue], until: deadline)[0] else {
        throw Failure(description: "the worker \(kind) does not answer")
      }
      let bytes = try Program.read(from: output.descriptor.rawValue, maximumBytes: 4_096)
      guard !bytes.isEmpty else { throw Failure(description: "the worker \(kind) has ended") }
      pending += bytes
    }
  }

  func ask(_ line: String) throws -> String {
    try tell(line)
    return try answer()
  }

  func kill() throws(Errno) { try process.send(.kill) }

  /// Waits for its end, so that it does not stay a zombie.
  func reap() throws(Errno) { _ = try process.wait(until: .now + .seconds(10)) }

  /// Returns the numbers of an answer.
  func askNumbers(_ line: String) throws -> [Double] {
    try ask(line).split(separator: " ").compactMap { Double($0) }
  }
}
