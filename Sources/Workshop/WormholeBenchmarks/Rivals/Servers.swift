import FoundationEssentials
import Synchronization
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// A server for one run, which is killed when the value is released; nil if the program is not installed.
final class RivalServer: Sendable {
  /// Where its clients find it.
  let address: String
  private let process: LineProcess

  /// Starts a server, and waits until it prints a text.
  private init?(
    at address: String, _ program: String, _ arguments: [String], isReadyAt text: String
  ) throws {
    self.address = address
    do {
      process = try LineProcess(program, arguments)
    } catch let error as Errno where error == .noSuchFile {
      return nil
    }
    while try !process.line(until: .now + .seconds(20)).contains(text) {}
  }

  deinit {
    do throws(Errno) {
      // Redis's is outside the run's directory.
      if address.hasPrefix("/") { _ = try ifPresent(removeFile(address)) }
    } catch {
      Terminal.say("cannot remove \(address): \(error)")
    }
  }

  /// Starts a Redis server that flushes each command to the disk before it answers.
  static func redis(_ directory: String) throws -> RivalServer? {
    // Its path must be short (unix(7)), and the directory's may be long.
    let socket = "/tmp/benchmarks-\(Program.processID).redis"
    return try RivalServer(
      at: socket, "redis-server",
      [
        "--port", "0", "--unixsocket", socket, "--dir", directory, "--save", "",
        "--appendonly", "yes", "--appendfsync", "always",
      ], isReadyAt: "eady to accept connections")
  }

  /// Starts a NATS server with JetStream. Debian's (2.9) confirms a message before it is on the disk.
  static func nats(_ directory: String) throws -> RivalServer? {
    let port = try EtcdNode.freePort()
    return try RivalServer(
      at: "nats://127.0.0.1:\(port)", "nats-server",
      ["-js", "-sd", directory, "-a", "127.0.0.1", "-p", "\(port)"],
      isReadyAt: "Server is ready")
  }
}

extension FileDescriptor {
  /// Waits for bytes from a server, which keeps the connection open.
  func read(from server: String) throws -> [UInt8] {
    let bytes = try Program.read(from: rawValue, maximumBytes: 65_536)
    guard !bytes.isEmpty else { throw Failure(description: "\(server) closed the connection") }
    return bytes
  }
}

/// A Redis client, which sends a command and waits for its answer. For one thread at a time.
final class RedisConnection: Sendable {
  private let file: FileDescriptor
  /// It runs as long as it has clients.
  private let server: RivalServer

  init(_ server: RivalServer) throws {
    self.server = server
    file = try .connected(toSocket: server.address)
  }

  /// Appends an entry to a list; it is on the disk when this returns.
  func send(_ entry: [UInt8]) throws {
    try ask([Array("RPUSH".utf8), Array("queue".utf8), entry])
  }

  func ask(_ words: [String]) throws { try ask(words.map { Array($0.utf8) }) }

  private func ask(_ words: [[UInt8]]) throws {
    var command = Array("*\(words.count)\r\n".utf8)
    for word in words { command += Array("$\(word.count)\r\n".utf8) + word + [13, 10] }
    try file.writeAll(command)
    try hear()
  }

  /// Waits for an answer, or a message: each arrives as one, because it is short.
  func hear() throws {
    let answer = try file.read(from: "Redis")
    guard answer[0] != UInt8(ascii: "-") else {
      throw Failure(description: "Redis answers \(String(decoding: answer, as: UTF8.self))")
    }
  }
}

/// The floor of a container on etcd: the same requests on one connection that stays open, prepared
/// beforehand, and answers that are discarded.
final class RawEtcd: Sendable {
  private let socket: FileDescriptor

  init(_ endpoint: String) throws { socket = try .connected(to: endpoint) }

  private static func request(_ path: String, _ json: String, isLast: Bool = false) -> [UInt8] {
    Array(
      ("POST /v3/\(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        + (isLast ? "Connection: close\r\n" : "")
        + "Content-Length: \(json.utf8.count)\r\n\r\n\(json)").utf8)
  }

  static func put(_ key: String, _ value: String) -> [UInt8] {
    request("kv/put", #"{"key":"\#(key.base64)","value":"\#(value.base64)"}"#)
  }

  static func get(_ key: String) -> [UInt8] {
    request("kv/range", #"{"key":"\#(key.base64)"}"#)
  }

  /// A transaction with one condition that holds and one put.
  static func transaction(_ key: String, _ value: String) -> [UInt8] {
    let key = key.base64
    return request(
      "kv/txn",
      #"{"compare":[{"key":"\#(key)","target":"VERSION","result":"GREATER","version":"-1"}],"#
        + #""success":[{"requestPut":{"key":"\#(key)","value":"\#(value.base64)"}}],"#
        + #""failure":[{"requestRange":{"key":"\#(key)"}}]}"#)
  }

  /// Sends a request and waits for the end of its answer.
  func ask(_ request: [UInt8]) throws {
    try socket.writeAll(request)
    var answer: [UInt8] = []
    repeat { answer += try socket.read(from: "etcd") } while !Self.isWhole(answer)
  }

  private static func isWhole(_ answer: [UInt8]) -> Bool {
    let beginning = answer.prefix(1_000)
    // The header may arrive in parts, or alone.
    let end = beginning.indices.dropFirst(3).first { beginning[($0 - 3)...$0] == headerEnd }
    guard let end else { return false }
    let lines = String(decoding: answer[..<end], as: UTF8.self).split(separator: "\r\n")
    guard let length = lines.first(where: { $0.hasPrefix("Content-Length: ") })?.dropFirst(16)
    else { return answer.suffix(5).elementsEqual("0\r\n\r\n".utf8) }
    return answer.count > end + (Int(length) ?? 0)
  }

  private static let headerEnd = ArraySlice("\r\n\r\n".utf8)

  /// Begins to watch a key; the connection then has no other use.
  func watch(_ key: String) throws {
    try socket.writeAll(
      Self.request("watch", #"{"create_request":{"key":"\#(key.base64)"}}"#, isLast: true))
    try line()
  }

  /// Waits for a line of the watch.
  func line() throws {
    var last: UInt8 = 0
    while true {
      // Other line ends belong to chunks.
      for byte in try socket.read(from: "etcd") {
        if last == UInt8(ascii: "}"), byte == UInt8(ascii: "\n") { return }
        last = byte
      }
    }
  }
}

extension String {
  fileprivate var base64: String { Data(utf8).base64EncodedString() }
}

/// A NATS client, which waits for each answer. For one thread at a time.
final class NATSConnection {
  private let socket: FileDescriptor
  /// It runs as long as it has clients.
  private let server: RivalServer
  private var pending: [UInt8] = []

  init(_ server: RivalServer) throws {
    self.server = server
    socket = try .connected(to: server.address)
    _ = try line()
    try send(#"CONNECT {"verbose":false}"#)
    try subscribe("inbox")
  }

  func subscribe(_ subject: String) throws {
    try send("SUB \(subject) 1")
    try send("PING")
    while try line() != "PONG" {}
  }

  /// Publishes a message, and waits for the answer to it.
  ///
  /// - Returns: The subject for the answer to the answer, which acknowledges a message that was taken.
  @discardableResult
  func ask(_ subject: String, _ payload: String) throws -> String? {
    try send("PUB \(subject) inbox \(payload.utf8.count)\r\n\(payload)")
    return try message()
  }

  func publish(_ subject: String, _ payload: String) throws {
    try send("PUB \(subject) \(payload.utf8.count)\r\n\(payload)")
  }

  /// Waits for a message, and returns the subject for the answer to it.
  @discardableResult
  func message() throws -> String? {
    while true {
      // MSG <subject> <sid> [reply] <bytes>
      let words = try line().split(separator: " ").map(String.init)
      if words.first == "PING" { try send("PONG") }
      guard words.first == "MSG", let count = words.last.flatMap({ Int($0) }) else { continue }
      while pending.count < count + 2 { pending += try socket.read(from: "NATS") }
      let text = String(decoding: pending.prefix(count), as: UTF8.self)
      pending.removeFirst(count + 2)
      guard !text.contains("\"error\"") else { throw Failure(description: "NATS answers \(text)") }
      return words.count == 5 ? words[3] : nil
    }
  }

  private func send(_ text: String) throws { try socket.writeAll(Array("\(text)\r\n".utf8)) }

  private func line() throws -> String {
    while true {
      if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        defer { pending.removeFirst(end + 1) }
        return String(decoding: pending[..<max(0, end - 1)], as: UTF8.self)
      }
      pending += try socket.read(from: "NATS")
    }
  }
}

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

  private typealias Open =
    @convention(c) (
      UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>, Int32, UnsafePointer<CChar>?
    ) -> Int32
  private typealias Prepare =
    @convention(c) (
      OpaquePointer?, UnsafePointer<CChar>, Int32, UnsafeMutablePointer<OpaquePointer?>,
      OpaquePointer?
    ) -> Int32
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
    func call<Function>(_ name: String, as type: Function.Type) -> Function? {
      function("sqlite3_" + name, of: "libsqlite3.so.0", as: type)
    }
    guard let open = call("open_v2", as: Open.self),
      let prepare = call("prepare_v2", as: Prepare.self),
      let step = call("step", as: Call.self), let reset = call("reset", as: Call.self)
    else { return nil }
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

  /// Appends an entry in its own transaction.
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
