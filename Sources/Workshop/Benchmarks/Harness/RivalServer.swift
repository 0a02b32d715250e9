import SystemCalls

/// A server for one run, if its program is installed; it is killed at the end.
final class RivalServer {
  private let process: ChildProcess

  /// - Returns: nil if the program is not installed.
  init?(_ program: String, _ arguments: [String], output: Int32? = nil) throws(Errno) {
    // It complains about limits that it may not raise.
    let quiet = try FileDescriptor.open("/dev/null", .readWrite)
    do throws(Errno) {
      process = try ChildProcess(
        program, arguments, output: output ?? quiet.rawValue, errors: quiet.rawValue)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  deinit {
    do throws(Errno) {
      try process.send(.kill)
      _ = try process.wait(until: .now + .seconds(10))
    } catch {
      // It has ended already.
      return
    }
  }
}
