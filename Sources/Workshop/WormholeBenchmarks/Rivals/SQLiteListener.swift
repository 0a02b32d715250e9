import WormholeSystem
import WormholeToolkit
import WormholeWorkshop

/// A program in Python that waits for commits to an SQLite database as one does without a server: it
/// asks for the version of the data each millisecond.
struct SQLiteListener {
  private static let program = """
    import sqlite3, sys, time
    database = sqlite3.connect(sys.argv[1], isolation_level=None)
    def version(): return database.execute("PRAGMA data_version").fetchone()[0]
    last = version()
    print("ready", flush=True)
    while True:
        now = version()
        if now != last:
            last = now
            print(time.clock_gettime_ns(time.CLOCK_BOOTTIME), flush=True)
        time.sleep(0.001)
    """

  private let database: SQLiteQueue
  private let process: LineProcess

  /// - Returns: nil if SQLite or Python is not installed.
  init?(_ directory: String) throws {
    guard let database = try SQLiteQueue(directory, .normal, bytes: 100) else { return nil }
    self.database = database
    process = try LineProcess(
      "python3", ["-c", Self.program, directory + "/queue.sqlite"], readsErrors: false)
    do {
      guard try answer() == "ready" else { return nil }
    } catch is LineProcess.Failure {
      return nil
    }
  }

  private func answer() throws -> String { try process.line(until: .now + .seconds(30)) }

  /// Returns the nanoseconds from the beginning of a commit until the program has noticed it.
  func notice() throws -> Double {
    // Its looks and the commits are not in step.
    pauseThread(.microseconds(Int.random(in: 1_000...4_000)))
    let sent = bootTimeNanoseconds()
    try database.send()
    guard let heard = Double(try answer()) else {
      throw Failure(description: "the listener of SQLite prints no time")
    }
    return heard - Double(sent)
  }
}
