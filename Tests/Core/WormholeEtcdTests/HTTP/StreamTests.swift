import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

/// What a stream handed out.
final class Received: Sendable {
  private let state = Mutex<(lines: [[UInt8]], end: HTTPStream.End?, ends: Int)>(([], nil, 0))

  func start(
    _ request: HTTPRequest, maximumLineBytes: Int = 4 << 20, isOpen: Bool = false
  ) throws -> HTTPStream {
    try HTTPStream(
      request, maximumLineBytes: maximumLineBytes, connectLimit: .seconds(30), isOpen: isOpen,
      onLine: { line in self.state.withLock { $0.lines.append(line) } },
      onEnd: { end in
        self.state.withLock {
          $0.end = end
          $0.ends += 1
        }
      })
  }

  var lines: [[UInt8]] { state.withLock { $0.lines } }
  var ends: Int { state.withLock { $0.ends } }

  func waitForEnd() throws -> HTTPStream.End {
    try eventually("the stream ends") { ends > 0 }
    return try #require(state.withLock { $0.end })
  }

  func errorOfEnd() throws -> HTTPError.Code? {
    guard case .failure(let error) = try waitForEnd() else { return nil }
    return error.code
  }
}

@Suite("Streams", .blocking)
struct StreamTests {
  @Test("come line by line, in pieces of any size, until the server ends them")
  func pieces() throws {
    let expected = (0..<300).map { "line \($0)" + String(repeating: "x", count: $0) }
    let server = try HostileServer { connection in
      try connection.readRequest()
      try connection.beginStream()
      let bytes = Array((expected.joined(separator: "\n") + "\n\n").utf8)
      for start in stride(from: 0, to: bytes.count, by: 97) {
        try connection.sendChunk(Array(bytes[start..<min(start + 97, bytes.count)]))
      }
      try connection.sendChunk([])
    }
    let received = Received()
    _ = try received.start(server.request())
    #expect(try received.errorOfEnd() == .ended)
    #expect(received.lines.map { String(decoding: $0, as: UTF8.self) } == expected)
    #expect(received.ends == 1)
  }

  @Test("hand a line out before the next one exists")
  func atOnce() throws {
    let goOn = Atomic(0)
    let server = try HostileServer { connection in
      try connection.readRequest()
      try connection.beginStream()
      for number in 1...3 {
        try eventually("the test goes on") { goOn.load(ordering: .acquiring) >= number }
        try connection.sendChunk(Array("\(number)\n".utf8))
      }
      try connection.waitForEnd()
    }
    let received = Received()
    let stream = try received.start(server.request())
    for number in 1...3 {
      goOn.store(number, ordering: .releasing)
      try eventually("line \(number)") { received.lines.count == number }
    }
    stream.cancel()
    #expect(try received.errorOfEnd() == .cancelled)
  }

  @Test("have lines of megabytes, and refuse what is longer than the caller wants")
  func longLines() throws {
    let server = try HostileServer { connection in
      try connection.readRequest()
      try connection.beginStream()
      let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 100_000)
      for _ in 0..<30 { try connection.sendChunk(piece) }
      try connection.sendChunk([UInt8(ascii: "\n")])
      try connection.sendChunk([])
    }
    let received = Received()
    _ = try received.start(server.request())
    #expect(try received.errorOfEnd() == .ended)
    #expect(received.lines.map(\.count) == [3_000_000])
    let refusing = Received()
    _ = try refusing.start(server.request(), maximumLineBytes: 2_999_999)
    #expect(try refusing.errorOfEnd() == .tooLarge)
    #expect(refusing.lines.isEmpty)
  }

  @Test(
    "send more while they are answered, and hear their end while they have nothing to send",
    arguments: ["end", "close", "401"])
  func more(end: String) throws {
    let server = try HostileServer { connection in
      try connection.read(until: "first")
      if end == "401" { return try connection.answer("no", status: "401 No") }
      try connection.beginStream(closing: true)
      try connection.sendChunk(Array("one\n".utf8))
      try connection.read(until: "second")
      try connection.sendChunk(Array("two\n".utf8))
      if end == "end" { try connection.sendChunk([]) }
      connection.close()
    }
    let received = Received()
    let stream = try received.start(server.request("first"), isOpen: true)
    guard end != "401" else {
      guard case .success(let answer) = try received.waitForEnd() else {
        Issue.record("it was refused")
        return
      }
      #expect(answer.status == 401)
      return
    }
    try eventually("the first line") { received.lines.count == 1 }
    stream.send(Array("second".utf8))
    #expect(try received.errorOfEnd() == (end == "end" ? .ended : .inDoubt))
    #expect(received.lines.map { String(decoding: $0, as: UTF8.self) } == ["one", "two"])
  }

  @Test("that end too early, are refused or find nobody report that")
  func ends() throws {
    let cut = try HostileServer { connection in
      try connection.readRequest()
      try connection.beginStream()
      try connection.sendChunk(Array("one\ntw".utf8))
      connection.close()
    }
    let received = Received()
    _ = try received.start(cut.request())
    #expect(try received.errorOfEnd() == .inDoubt)
    #expect(received.lines == [Array("one".utf8)])

    let refusing = try HostileServer { connection in
      try connection.readRequest()
      try connection.answer("{\"code\":16}\n", status: "401 No")
    }
    let refused = Received()
    _ = try refused.start(refusing.request())
    guard case .success(let answer) = try refused.waitForEnd() else {
      Issue.record("it was not answered")
      return
    }
    #expect(answer == HTTPAnswer(status: 401, content: Array("{\"code\":16}\n".utf8)))
    #expect(refused.lines.isEmpty)

    let lonely = Received()
    let port = try HostileServer.unusedPort()
    _ = try lonely.start(
      HTTPRequest(url: "http://127.0.0.1:\(port)", content: Array("{}".utf8)))
    #expect(try lonely.errorOfEnd() == .refused)
  }

  @Test("are cancelled in the middle, many at once, beside requests")
  func cancelling() throws {
    let open = Atomic(0)
    let server = try HostileServer { connection in
      while try connection.readRequest() != "stream" { try connection.answer("1") }
      try connection.beginStream()
      open.add(1, ordering: .acquiringAndReleasing)
      defer { open.subtract(1, ordering: .acquiringAndReleasing) }
      // Until the client has had enough.
      let line = [UInt8](repeating: UInt8(ascii: "x"), count: 5_000) + [UInt8(ascii: "\n")]
      while true { try connection.sendChunk(line) }
    }
    let client = HTTPClient()
    for _ in 0..<5 {
      let all = try (0..<10).map { _ in
        let received = Received()
        return (received, try received.start(server.request("stream")))
      }
      for (received, stream) in all {
        try eventually("it has begun") { !received.lines.isEmpty }
        let answer = try client.post(
          server.request("call"), maximumBytes: 10, until: .now + .seconds(30))
        #expect(answer.status == 200)
        stream.cancel()
        stream.cancel()
      }
      for (received, _) in all {
        #expect(try received.errorOfEnd() == .cancelled)
        #expect(received.ends == 1)
      }
    }
    try eventually("the server has no stream left") { open.load(ordering: .acquiring) == 0 }
  }
}
