import Synchronization
import WormholeSystem
import WormholeWorkshop

/// A table in an SQLite database to which one entry is appended again and again, one transaction each,
/// through its C library if that is installed.
///
/// All threads share one connection under a lock. With one connection each, they would mostly wait
/// for each other's locks on the file, and SQLite would look slower than it is.
final class SQLiteQueue: Sendable {
  /// The values of `PRAGMA synchronous`.
  enum Synchronous: String {
    /// A commit is in the write-ahead log, which may not be on the disk.
    case normal = "NORMAL"
    /// Each commit is on the disk.
    case full = "FULL"
  }

  private typealias Call = @convention(c) (OpaquePointer?) -> Int32

  private struct Statement {
    let step: Call
    let reset: Call
    // A number, because C pointers are for one thread at a time, and the lock ensures that.
    let address: Int
  }

  private let insertion: Mutex<Statement>

  /// - Parameter bytes: The size of the entry.
  /// - Returns: nil if SQLite is not installed.
  init?(_ directory: String, _ synchronous: Synchronous, bytes: Int) throws {
    guard let library = DynamicLibrary("libsqlite3.so.0") else { return nil }
    func function<Function>(_ name: String) throws -> Function {
      guard let function = library.function("sqlite3_" + name, as: Function.self) else {
        throw Failure(description: "this SQLite has no \(name)")
      }
      return function
    }
    let open:
      @convention(c) (
        UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>, Int32, UnsafePointer<CChar>?
      ) -> Int32 = try function("open_v2")
    let prepare:
      @convention(c) (
        OpaquePointer?, UnsafePointer<CChar>, Int32, UnsafeMutablePointer<OpaquePointer?>,
        OpaquePointer?
      ) -> Int32 = try function("prepare_v2")
    let (step, reset): (Call, Call) = (try function("step"), try function("reset"))
    var database: OpaquePointer?
    // SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    try Self.check(open(directory + "/queue.sqlite", &database, 0x8006, nil), "open")
    var statement: OpaquePointer?
    for sentence in [
      "PRAGMA journal_mode=WAL", "PRAGMA synchronous=\(synchronous.rawValue)",
      "CREATE TABLE queue (number INTEGER PRIMARY KEY, entry BLOB)",
      "INSERT INTO queue (entry) VALUES (x'\(String(repeating: "78", count: bytes))')",
    ] {
      try Self.check(prepare(database, sentence, -1, &statement, nil), sentence)
      // A row, or the end.
      try Self.check(step(statement), sentence, [100, 101])
      // While a statement is open, no later one commits.
      try Self.check(reset(statement), sentence)
    }
    insertion = Mutex(
      Statement(step: step, reset: reset, address: Int(bitPattern: statement)))
  }

  /// Appends an entry in a transaction of its own.
  func send() throws {
    try insertion.withLock { insertion in
      let statement = OpaquePointer(bitPattern: insertion.address)
      try Self.check(insertion.step(statement), "insert", [101])
      try Self.check(insertion.reset(statement), "reset")
    }
  }

  private static func check(_ result: Int32, _ action: String, _ expected: [Int32] = [0]) throws {
    guard expected.contains(result) else {
      throw Failure(description: "SQLite refuses \(action): \(result)")
    }
  }
}
