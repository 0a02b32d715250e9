import Synchronization
import WormholeSystem
import WormholeTestSupport

/// One run of one wrapped call: its own directory, and a plan that interrupts the call.
final class CallBench: Sendable {
  let path: String
  private let directory: TemporaryDirectory
  private let call: SystemCall
  private let interruptions: Int
  private let count = Mutex(0)

  init(_ call: SystemCall, interruptions: Int) throws {
    directory = try TemporaryDirectory()
    path = directory.path
    self.call = call
    self.interruptions = interruptions
  }

  /// The number of attempts of the call.
  var attempts: Int { count.withLock { $0 } }

  /// Runs the part of the row that is interrupted; the row's preparation and checks are not.
  func act<Result>(_ body: () throws -> Result) rethrows -> Result {
    let plan = Faults.Plan { [self] name, _ in
      guard name == call else { return .proceed }
      let attempt = count.withLock { count in
        count += 1
        return count
      }
      return attempt <= interruptions ? .fail(.interrupted) : .proceed
    }
    return try Faults.$plan.withValue(plan, operation: body)
  }

  /// Creates a file with a content and opens it.
  func file(_ name: String = "file", _ content: String = "") throws -> FileDescriptor {
    let file = try FileDescriptor.open(
      "\(path)/\(name)", [.readWrite, .create, .truncate])
    try file.writeAll(Array(content.utf8))
    return try FileDescriptor.open("\(path)/\(name)", .readWrite)
  }

  func opened() throws -> FileDescriptor {
    try FileDescriptor.open(path, [.readOnly, .directory])
  }

  /// Returns the content of a file, or the reason why there is none.
  func content(_ name: String) -> String {
    do throws(Errno) {
      let file = try FileDescriptor.open("\(path)/\(name)", .readOnly)
      return String(
        decoding: try file.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20), as: UTF8.self)
    } catch {
      return error.description
    }
  }
}

/// A row of the table: a wrapped call, a closure that runs it, and the expected result.
struct CallRow: Sendable, CustomStringConvertible {
  let call: SystemCall
  let expected: String
  let run: @Sendable (CallBench) throws -> String
  var description: String { call.rawValue }

  init(
    _ call: SystemCall, _ expected: String, _ run: @escaping @Sendable (CallBench) throws -> String
  ) {
    self.call = call
    self.expected = expected
    self.run = run
  }
}
