import FoundationEssentials
import WormholeSystem
import WormholeWorkshop

/// A NATS server with JetStream for one run, if the program is installed. Debian's (2.9) confirms a message
/// before it is on the disk.
final class NATSServer {
  private let server: LineProcess
  private let endpoint: String

  /// - Returns: nil if NATS is not installed.
  init?(_ directory: String) throws {
    let port = try EtcdNode.freePort()
    endpoint = "nats://127.0.0.1:\(port)"
    let started = try rival(
      "nats-server", ["-js", "-sd", directory, "-a", "127.0.0.1", "-p", "\(port)"],
      isReadyAt: "Server is ready")
    guard let started else { return nil }
    server = started
  }

  func connection() throws -> NATSConnection { try NATSConnection(endpoint) }
}

/// One client of NATS, which waits for each answer. For one thread at a time.
final class NATSConnection {
  private let socket: FileDescriptor
  private var pending: [UInt8] = []

  init(_ endpoint: String) throws {
    socket = try FileDescriptor.connected(to: endpoint)
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
      while pending.count < count + 2 { try read() }
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
      try read()
    }
  }

  private func read() throws {
    let bytes = try Program.read(from: socket.rawValue, maximumBytes: 65_536)
    guard !bytes.isEmpty else { throw Failure(description: "NATS closed the connection") }
    pending += bytes
  }
}
