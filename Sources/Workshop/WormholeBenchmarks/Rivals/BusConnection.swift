import WormholeSystem
import WormholeToolkit
import WormholeWorkshop

/// A minimal connection to a D-Bus daemon: method calls with one string, and their answers (D-Bus
/// Specification 0.43, "Message Protocol").
final class BusConnection {
  /// The parts of a message that matter here.
  private struct Message {
    let kind: UInt8
    let serial: UInt32
    let sender: [UInt8]
    let body: [UInt8]
  }

  private let socket: FileDescriptor
  private var pending: [UInt8] = []
  private var serial: UInt32 = 0

  private static let daemon = "org.freedesktop.DBus"

  init(_ path: String) throws {
    socket = try .connected(toSocket: path)
    let user = "\(Program.effectiveUser)".utf8.map { String($0, radix: 16) }.joined()
    try socket.writeAll([0] + Array("AUTH EXTERNAL \(user)\r\n".utf8))
    while !pending.contains(UInt8(ascii: "\n")) { pending += try socket.read(from: "D-Bus") }
    guard pending.starts(with: "OK".utf8) else { throw Failure(description: "not let in") }
    pending = []
    try socket.writeAll(Array("BEGIN\r\n".utf8))
    try call(Self.daemon, "Hello", signature: "", body: [])
  }

  func own(_ name: String) throws {
    let name = Self.string(name)
    let body = name + Self.padding(name.count, 4) + Self.number(0)
    try call(Self.daemon, "RequestName", signature: "su", body: body)
  }

  /// Calls a method with a string and waits for the answer.
  func ask(_ destination: String, _ member: String, argument: String) throws {
    try call(destination, member, signature: "s", body: Self.string(argument))
  }

  /// Answers the next call with its own argument.
  func answerNext() throws {
    let call = try next { $0.kind == 1 }
    try send(
      2,
      [
        (6, "s", Self.number(call.sender.count) + call.sender + [0]),
        (5, "u", Self.number(Int(call.serial))), (8, "g", [1, UInt8(ascii: "s"), 0]),
      ], body: call.body)
  }

  private func call(
    _ destination: String, _ member: String, signature: String, body: [UInt8]
  ) throws {
    try send(
      1,
      [
        (1, "o", Self.string("/org/freedesktop/DBus")), (2, "s", Self.string(Self.daemon)),
        (3, "s", Self.string(member)), (6, "s", Self.string(destination)),
        (8, "g", [UInt8(signature.utf8.count)] + Array(signature.utf8) + [0]),
      ], body: body)
    guard try next({ [2, 3].contains($0.kind) }).kind == 2 else {
      throw Failure(description: "\(member) failed")
    }
  }

  // MARK: Writing

  private func send(
    _ kind: UInt8, _ fields: [(number: UInt8, type: Unicode.Scalar, value: [UInt8])], body: [UInt8]
  ) throws {
    serial += 1
    var header: [UInt8] = []
    for field in fields {
      header += Self.padding(header.count, 8) + [field.number, 1, UInt8(ascii: field.type), 0]
      header += field.value
    }
    var message: [UInt8] = [UInt8(ascii: "l"), kind, 0, 1]
    for number in [body.count, Int(serial), header.count] { message += Self.number(number) }
    message += header
    try socket.writeAll(message + Self.padding(message.count, 8) + body)
  }

  private static func number(_ value: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  private static func string(_ text: String) -> [UInt8] {
    number(text.utf8.count) + Array(text.utf8) + [0]
  }

  private static func padding(_ count: Int, _ alignment: Int) -> [UInt8] {
    [UInt8](repeating: 0, count: (alignment - count % alignment) % alignment)
  }

  // MARK: Reading

  private func next(_ isWanted: (Message) -> Bool) throws -> Message {
    while true {
      if let message = takeMessage() {
        if isWanted(message) { return message }
      } else {
        pending += try socket.read(from: "D-Bus")
      }
    }
  }

  private func takeMessage() -> Message? {
    guard pending.count >= 16 else { return nil }
    let fields = 16..<(16 + number(at: 12))
    let body = fields.upperBound + Self.padding(fields.upperBound, 8).count
    let end = body + number(at: 4)
    guard pending.count >= end else { return nil }
    defer { pending.removeFirst(end) }
    // Each field begins at a multiple of 8, with its number; no text has one of these.
    let field = stride(from: 16, to: fields.upperBound, by: 8).first { pending[$0] == 7 }
    let sender = field.map { pending[($0 + 8)...].prefix(number(at: $0 + 4)) }
    return Message(
      kind: pending[1], serial: UInt32(number(at: 8)), sender: Array(sender ?? []),
      body: Array(pending[body..<end]))
  }

  private func number(at offset: Int) -> Int {
    (0..<4).reduce(0) { $0 | Int(pending[offset + $1]) << (8 * $1) }
  }
}
