import Synchronization
import WormholeWorkshop

/// A table in an SQLite database to which entries are appended, one transaction each, through its C
/// library if that is installed.
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

  private struct Functions {
    let open:
      @convention(c) (
        UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>, Int32, UnsafePointer<CChar>?
      ) -> Int32
    let execute:
      @convention(c) (
        OpaquePointer?, UnsafePointer<CChar>, OpaquePointer?, OpaquePointer?, OpaquePointer?
      ) -> Int32
    let prepare:
      @convention(c) (
        OpaquePointer?, UnsafePointer<CChar>, Int32, UnsafeMutablePointer<OpaquePointer?>,
        OpaquePointer?
      ) -> Int32
    let bind:
      @convention(c) (OpaquePointer?, Int32, UnsafeRawPointer?, Int32, OpaquePointer?) -> Int32
    let step, reset, finalize, close: @convention(c) (OpaquePointer?) -> Int32

    init(_ library: DynamicLibrary) throws {
      func function<Function>(_ name: String) throws -> Function {
        guard let function = library.function("sqlite3_" + name, as: Function.self) else {
          throw Failure(description: "this SQLite has no \(name)")
        }
        return function
      }
      open = try function("open_v2")
      execute = try function("exec")
      prepare = try function("prepare_v2")
      bind = try function("bind_blob")
      step = try function("step")
      reset = try function("reset")
      finalize = try function("finalize")
      close = try function("close")
    }
  }

  // Numbers, because C pointers are for one thread at a time, and the lock ensures that.
  private struct Addresses {
    var database: Int
    var insertion: Int
  }

  private let functions: Functions
  private let addresses: Mutex<Addresses>

  /// - Returns: nil if SQLite is not installed.
  init?(_ directory: String, _ synchronous: Synchronous) throws {
    guard let library = DynamicLibrary("libsqlite3.so.0") else { return nil }
    functions = try Functions(library)
    var database: OpaquePointer?
    // SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    try Self.check(functions.open(directory + "/queue.sqlite", &database, 0x8006, nil), "open")
    for sentence in [
      "PRAGMA journal_mode=WAL", "PRAGMA synchronous=\(synchronous.rawValue)",
      "CREATE TABLE queue (number INTEGER PRIMARY KEY, entry BLOB)",
    ] { try Self.check(functions.execute(database, sentence, nil, nil, nil), sentence) }
    var insertion: OpaquePointer?
    try Self.check(
      functions.prepare(
        database, "INSERT INTO queue (entry) VALUES (?)", -1, &insertion, nil), "prepare")
    addresses = Mutex(
      Addresses(database: Int(bitPattern: database), insertion: Int(bitPattern: insertion)))
  }

  deinit {
    let addresses = addresses.withLock { $0 }
    _ = functions.finalize(OpaquePointer(bitPattern: addresses.insertion))
    _ = functions.close(OpaquePointer(bitPattern: addresses.database))
  }

  /// Appends an entry in a transaction of its own.
  func send(_ entry: [UInt8]) throws {
    try addresses.withLock { addresses in
      let insertion = OpaquePointer(bitPattern: addresses.insertion)
      try entry.withUnsafeBytes { bytes in
        // Not copied (SQLITE_STATIC): the entry lives until the reset.
        try Self.check(
          functions.bind(insertion, 1, bytes.baseAddress, Int32(bytes.count), nil), "bind")
        let result = functions.step(insertion)
        guard result == 101 else { throw Failure(description: "SQLite does not insert: \(result)") }
        try Self.check(functions.reset(insertion), "reset")
      }
    }
  }

  private static func check(_ result: Int32, _ action: String) throws {
    guard result == 0 else { throw Failure(description: "SQLite refuses \(action): \(result)") }
  }
}
