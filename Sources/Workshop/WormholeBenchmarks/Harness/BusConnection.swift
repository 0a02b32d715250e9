import WormholeSystem
import WormholeWorkshop

/// A minimal connection to a D-Bus daemon: method calls with one string, and their answers (D-Bus
/// Specification 0.43, "Message Protocol").
final class BusConnection {
  /// The parts of a message that matter here.
  struct Message {
    var kind: UInt8
    var serial: UInt32
    var fields: [UInt8: [UInt8]] = [:]
    var body: [UInt8]

    func text(_ field: Field) -> String {
      String(decoding: fields[field.rawValue] ?? [], as: UTF8.self)
    }
  }

  /// The numbers of header fields.
  enum Field: UInt8 {
    case path = 1
    case interface, member
    case replySerial = 5
    case destination, sender, signature
  }

  private let socket: FileDescriptor
  private var pending: [UInt8] = []
  private var serial: UInt32 = 0

  init(_ path: String) throws {
    socket = try .connected(toSocket: path)
    let user = "\(Program.effectiveUser)".utf8.map { String($0, radix: 16) }.joined()
    try socket.writeAll([0] + Array("AUTH EXTERNAL \(user)\r\n".utf8))
    while !pending.contains(UInt8(ascii: "\n")) { try receive() }
    guard pending.starts(with: "OK".utf8) else { throw Failure(description: "not let in") }
    pending = []
    try socket.writeAll(Array("BEGIN\r\n".utf8))
    _ = try ask("org.freedesktop.DBus", "Hello", argument: nil)
  }

  /// Becomes the owner of a name.
  func own(_ name: String) throws {
    try send(
      kind: 1, destination: "org.freedesktop.DBus", member: "RequestName", signature: "su",
      body: Self.string(name) + Self.padding(Self.string(name).count, 4) + [0, 0, 0, 0])
    _ = try next { $0.kind == 2 || $0.kind == 3 }
  }

  /// Calls a method with a string and waits for the answer.
  func ask(_ destination: String, _ member: String, argument: String?) throws -> Message {
    try send(
      kind: 1, destination: destination, member: member, signature: argument.map { _ in "s" },
      body: argument.map { Self.string($0) } ?? [])
    let answer = try next { $0.kind == 2 || $0.kind == 3 }
    guard answer.kind == 2 else { throw Failure(description: "\(member) failed") }
    return answer
  }

  /// Answers the next call with its own argument.
  func answerNext() throws {
    let call = try next { $0.kind == 1 }
    try send(
      kind: 2, destination: call.text(.sender), signature: "s", answers: call.serial,
      body: call.body)
  }

  // MARK: Writing

  private func send(
    kind: UInt8, destination: String, member: String? = nil, signature: String?,
    answers: UInt32? = nil, body: [UInt8]
  ) throws {
    serial += 1
    var fields: [UInt8] = []
    func add(_ field: Field, _ type: String, value: [UInt8]) {
      fields += Self.padding(fields.count, 8) + [field.rawValue, 1] + Array(type.utf8) + [0]
      if type != "g" { fields += Self.padding(fields.count, 4) }
      fields += value
    }
    if let member {
      add(.path, "o", value: Self.string("/org/freedesktop/DBus"))
      add(.interface, "s", value: Self.string("org.freedesktop.DBus"))
      add(.member, "s", value: Self.string(member))
    }
    add(.destination, "s", value: Self.string(destination))
    if let answers { add(.replySerial, "u", value: Self.number(answers)) }
    if let signature {
      add(.signature, "g", value: [UInt8(signature.utf8.count)] + Array(signature.utf8) + [0])
    }
    var message: [UInt8] = [UInt8(ascii: "l"), kind, 0, 1]
    message += Self.number(UInt32(body.count)) + Self.number(serial)
    message += Self.number(UInt32(fields.count)) + fields
    message += Self.padding(message.count, 8) + body
    try socket.writeAll(message)
  }

  private static func number(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
  }

  private static func string(_ text: String) -> [UInt8] {
    number(UInt32(text.utf8.count)) + Array(text.utf8) + [0]
  }

  private static func padding(_ count: Int, _ alignment: Int) -> [UInt8] {
    [UInt8](repeating: 0, count: (alignment - count % alignment) % alignment)
  }

  // MARK: Reading

  private func receive() throws {
    let bytes = try Program.read(from: socket.rawValue, maximumBytes: 65_536)
    guard !bytes.isEmpty else { throw Failure(description: "the daemon has closed the connection") }
    pending += bytes
  }

  private func next(_ isWanted: (Message) -> Bool) throws -> Message {
    while true {
      if let message = takeMessage() {
        if isWanted(message) { return message }
      } else {
        try receive()
      }
    }
  }

  private func takeMessage() -> Message? {
    guard pending.count >= 16 else { return nil }
    let fieldsEnd = 16 + Int(number(at: 12))
    let bodyStart = fieldsEnd + Self.padding(fieldsEnd, 8).count
    let end = bodyStart + Int(number(at: 4))
    guard pending.count >= end else { return nil }
    var message = Message(
      kind: pending[1], serial: number(at: 8), body: Array(pending[bodyStart..<end]))
    var offset = 16
    while offset < fieldsEnd {
      offset += Self.padding(offset, 8).count
      guard offset + 4 < fieldsEnd else { break }
      let (field, type) = (pending[offset], pending[offset + 2])
      offset += 4
      switch type {
      case UInt8(ascii: "g"):
        offset += Int(pending[offset]) + 2
      case UInt8(ascii: "u"):
        offset += Self.padding(offset, 4).count + 4
      default:
        offset += Self.padding(offset, 4).count
        let count = Int(number(at: offset))
        message.fields[field] = Array(pending[(offset + 4)..<(offset + 4 + count)])
        offset += 4 + count + 1
      }
    }
    pending.removeFirst(end)
    return message
  }

  private func number(at offset: Int) -> UInt32 {
    (0..<4).reduce(0) { $0 | UInt32(pending[offset + $1]) << (8 * UInt32($1)) }
  }
}

/// A D-Bus daemon for one run.
final class BusDaemon {
  let socket: String
  private let server: RivalServer

  private static let configuration = """
    <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
     "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
    <busconfig><type>session</type><listen>unix:path=SOCKET</listen>
    <policy context="default"><allow send_destination="*"/><allow eavesdrop="true"/>
    <allow own="*"/></policy></busconfig>
    """

  /// - Returns: nil if no daemon is installed.
  init?(_ directory: String) throws {
    socket = directory + "/bus"
    let file = directory + "/bus.conf"
    let text = Self.configuration.split(separator: "SOCKET", maxSplits: 1).joined(separator: socket)
    try FileDescriptor.open(file, [.writeOnly, .create]).writeAll(Array(text.utf8))
    let output = try makePipe()
    let started = try RivalServer(
      "dbus-daemon", ["--config-file=\(file)", "--nofork", "--nopidfile", "--print-address"],
      output: output.write.rawValue)
    guard let started else { return nil }
    server = started
    let isReady = try waitReadable([output.read.rawValue], until: .now + .seconds(10))[0]
    guard isReady else { throw Failure(description: "dbus-daemon does not start") }
  }
}
