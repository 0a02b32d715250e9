import FoundationEssentials
import WormholeSystem
import WormholeWorkshop

/// Starts a server for one run, which is killed when the value is released, and waits until it prints a
/// text.
///
/// - Returns: nil if the program is not installed.
func rival(
  _ program: String, _ arguments: [String], isReadyAt text: String
) throws -> LineProcess? {
  do {
    let server = try LineProcess(program, arguments)
    while try !server.line(until: .now + .seconds(20)).contains(text) {}
    return server
  } catch let error as Errno where error == .noSuchFile {
    return nil
  }
}

/// A Redis server for one run that flushes each command to the disk before it answers, if the
/// program is installed.
final class RedisServer {
  private let server: LineProcess
  private let socket: String

  /// - Returns: nil if Redis is not installed.
  init?(_ directory: String) throws {
    // Its path must be short (unix(7)), and the directory's may be long.
    socket = "/tmp/benchmarks-\(Program.processID).redis"
    let started = try rival(
      "redis-server",
      [
        "--port", "0", "--unixsocket", socket, "--dir", directory, "--save", "",
        "--appendonly", "yes", "--appendfsync", "always",
      ], isReadyAt: "eady to accept connections")
    guard let started else { return nil }
    server = started
  }

  deinit {
    do throws(Errno) {
      try removeFile(socket)
    } catch {
      Terminal.say("cannot remove \(socket): \(error)")
    }
  }

  func connection() throws -> RedisConnection { try RedisConnection(socket) }
}

/// One client, which sends a command and waits for its answer. For one thread at a time.
final class RedisConnection: Sendable {
  private let file: FileDescriptor

  init(_ socket: String) throws { file = try FileDescriptor.connected(toSocket: socket) }

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
    let answer = try Program.read(from: file.rawValue, maximumBytes: 4_096)
    guard let first = answer.first, first != UInt8(ascii: "-") else {
      throw Failure(description: "Redis answers \(String(decoding: answer, as: UTF8.self))")
    }
  }
}

/// The floor of a container on etcd: the same requests on one connection that stays open, prepared
/// beforehand, and answers that are discarded.
final class RawEtcd: Sendable {
  private let socket: FileDescriptor

  init(_ endpoint: String) throws { socket = try FileDescriptor.connected(to: endpoint) }

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
    repeat { answer += try more() } while !Self.isWhole(answer)
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

  /// Begins to watch a key; the connection has no other use then.
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
      for byte in try more() {
        if last == UInt8(ascii: "}"), byte == UInt8(ascii: "\n") { return }
        last = byte
      }
    }
  }

  private func more() throws -> [UInt8] {
    let bytes = try Program.read(from: socket.rawValue, maximumBytes: 65_536)
    guard !bytes.isEmpty else { throw Failure(description: "etcd closed the connection") }
    return bytes
  }
}

extension String {
  fileprivate var base64: String { Data(utf8).base64EncodedString() }
}
