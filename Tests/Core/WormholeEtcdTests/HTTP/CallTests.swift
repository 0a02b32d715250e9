import Dispatch
import Glibc
import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

/// A wrong answer, and the error that the caller gets.
struct WrongAnswer: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let code: HTTPError.Code
  let answer: @Sendable (Connection) throws -> Void

  init(
    _ name: String, _ code: HTTPError.Code = .inDoubt,
    _ answer: @escaping @Sendable (Connection) throws -> Void
  ) {
    testDescription = name
    self.code = code
    self.answer = answer
  }

  /// Sends a text after the request, and ends the connection.
  init(_ name: String, sending text: String) {
    self.init(name) {
      try $0.readRequest()
      try $0.send(text)
      $0.close()
    }
  }

  static let all = [
    WrongAnswer("closed", sending: ""),
    WrongAnswer("reset") {
      try $0.readRequest()
      try $0.reset()
    },
    WrongAnswer("half a status line", sending: "HTTP/1.1 2"),
    WrongAnswer("half a header", sending: "HTTP/1.1 200 OK\r\nContent-Le"),
    WrongAnswer("half a body", sending: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive!"),
    WrongAnswer(
      "half a chunk", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nfive!"),
    WrongAnswer(
      "no chunk", sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nfive!"),
    WrongAnswer("garbage", sending: "\u{1}\u{2}\u{3} garbage\n\n\n"),
    WrongAnswer("only a continuation", sending: "HTTP/1.1 100 Continue\r\n\r\n"),
    WrongAnswer("a length that is none", sending: "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n"),
    WrongAnswer("silence") {
      try $0.readRequest()
      try $0.waitForEnd()
    },
    WrongAnswer("too large a body", .tooLarge) {
      try $0.readRequest()
      try $0.answer(String(repeating: "x", count: 1_001))
    },
    WrongAnswer("header lines without an end", .tooLarge) {
      try $0.readRequest()
      try $0.send("HTTP/1.1 200 OK\r\n")
      while true { try $0.send("A: " + String(repeating: "x", count: 1_000) + "\r\n") }
    },
  ]
}

@Suite("Requests", .blocking)
struct CallTests {
  private func post(
    _ request: HTTPRequest, by client: HTTPClient = HTTPClient(), within limit: Duration
  ) -> Result<HTTPAnswer, HTTPError> {
    Result { () throws(HTTPError) in
      try client.post(request, maximumBytes: 1_000, until: .now + limit)
    }
  }

  private func code(_ result: Result<HTTPAnswer, HTTPError>) -> HTTPError.Code? {
    guard case .failure(let error) = result else { return nil }
    return error.code
  }

  @Test("are answered, on one connection as long as it lasts, whatever the status")
  func plain() throws {
    let connections = Atomic(0)
    let server = try HostileServer { connection in
      connections.add(1, ordering: .acquiringAndReleasing)
      while true {
        let content = try connection.readRequest()
        try connection.answer("got \(content)", status: content == "b" ? "404 No" : "200 OK")
      }
    }
    let client = HTTPClient()
    for content in ["a", "b", "c"] {
      let answer = try client.post(
        server.request(content), maximumBytes: 1_000, until: .now + .seconds(30))
      #expect(
        answer
          == HTTPAnswer(status: content == "b" ? 404 : 200, content: Array("got \(content)".utf8)))
    }
    #expect(connections.load(ordering: .acquiring) == 1)
  }

  @Test("at once take a connection each, of which one is kept")
  func burst() throws {
    let count = 4
    let arrived = Atomic(0)
    let server = try HostileServer { connection in
      while true {
        _ = try connection.readRequest()
        arrived.add(1, ordering: .acquiringAndReleasing)
        try eventually("all have asked") { arrived.load(ordering: .acquiring) >= count }
        try connection.answer("{}")
      }
    }
    let client = HTTPClient(keepingSpares: .milliseconds(50))
    let group = DispatchGroup()
    for _ in 0..<count {
      Blocking.queue().async(group: group) {
        #expect(code(post(server.request(), by: client, within: .seconds(30))) == nil)
      }
    }
    #expect(group.wait(timeout: .now() + .seconds(60)) == .success)
    try eventually("the others are closed") { client.idleConnections == 1 }
    #expect(code(post(server.request(), by: client, within: .seconds(30))) == nil)
    #expect(client.idleConnections == 1)
  }

  @Test("end with an error that says what a caller may conclude", arguments: WrongAnswer.all)
  func wrong(answer: WrongAnswer) throws {
    let server = try HostileServer(answer.answer)
    // Only silence lasts as long as this.
    let isSilent = answer.testDescription == "silence"
    let result = post(server.request(), within: isSilent ? .milliseconds(200) : .seconds(30))
    #expect(code(result) == answer.code, "\(result)")
    #expect(server.requestCount == 1)
  }

  @Test("arrive in one piece, header and content")
  func onePiece() throws {
    let server = try HostileServer { connection in
      while true {
        try connection.readRequest()
        try connection.answer("{}")
      }
    }
    let client = HTTPClient()
    for _ in 0..<20 {
      #expect(code(post(server.request(), by: client, within: .seconds(30))) == nil)
    }
    #expect(server.pieceCount == 20)
  }

  @Test(
    "are not sent again when a kept connection ends before the answer", arguments: [1, 100_000])
  func once(bytes: Int) throws {
    let request = { (server: HostileServer) in server.request(String(repeating: "x", count: bytes))
    }
    let server = try HostileServer { connection in
      try connection.readRequest()
      try connection.answer("1")
      try connection.readRequest()
      connection.close()
    }
    let client = HTTPClient()
    #expect(code(post(request(server), by: client, within: .seconds(30))) == nil)
    let second = post(request(server), by: client, within: .seconds(30))
    #expect(code(second) == .inDoubt, "\(second)")
    #expect(server.requestCount == 2)
    // The next one has a new connection.
    #expect(code(post(request(server), by: client, within: .seconds(30))) == nil)
  }

  @Test("do not follow a redirection")
  func redirection() throws {
    let server = try HostileServer { connection in
      try connection.readRequest()
      try connection.send(
        "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    }
    #expect(try post(server.request(), within: .seconds(30)).get().status == 307)
    #expect(server.requestCount == 1)
  }

  @Test("that nobody can have got say so")
  func unsent() throws {
    let port = try HostileServer.unusedPort()
    let content = Array("{}".utf8)
    let refused = post(
      HTTPRequest(url: "http://127.0.0.1:\(port)", content: content), within: .seconds(30))
    #expect(code(refused) == .refused, "\(refused)")
    let nameless = post(
      HTTPRequest(url: "http://name.invalid:1", content: content), within: .seconds(30))
    #expect(code(nameless) == .nameNotFound, "\(nameless)")
    let late = post(HTTPRequest(url: "http://127.0.0.1:\(port)", content: content), within: .zero)
    #expect(code(late) == .timedOut)
    let file = post(HTTPRequest(url: "file:///etc/passwd", content: content), within: .seconds(30))
    #expect(code(file) == .nameNotFound)
    let line = HTTPRequest(
      url: "http://127.0.0.1:\(port)", headers: ["A: b\r\nC: d"], content: content)
    #expect(code(post(line, within: .seconds(30))) == .refused)
  }

  @Test("over TLS to a server without it fail for good")
  func noTLS() throws {
    let server = try HostileServer {
      try $0.send("this is not TLS\r\n\r\n")
      try $0.waitForEnd()
    }
    var request = server.request()
    request.url = "https://127.0.0.1:\(server.port)"
    #expect(code(post(request, within: .seconds(30))) == .certificate)
  }

  // libcurl cuts its sentences.
  @Test(
    "name the files of TLS in the error, however long the paths are",
    arguments: [TransportSecurity(authorities: missing), TransportSecurity(certificate: missing)])
  func longPath(security: TransportSecurity) throws {
    let server = try HostileServer { try $0.waitForEnd() }
    var request = server.request()
    request.url = "https://127.0.0.1:\(server.port)"
    request.security = security
    let error = #expect(throws: HTTPError.self) { try post(request, within: .seconds(30)).get() }
    #expect(error?.code == .certificate)
    #expect(error?.reason.contains(Self.missing) == true, "\(String(describing: error))")
  }

  private static let missing = String(repeating: "/missing", count: 100) + ".pem"

  // The threads of tests block the signal, as those of Dispatch do; a program's main thread does not.
  @Test("do not end the program when the other end is gone", .ownProcess)
  func brokenPipe() throws {
    signal(SIGPIPE, SIG_DFL)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    let pipe = try makePipe()
    let write = pipe.takeWrite()
    let failure = withoutBrokenPipeSignal { () -> WormholeSystem.Errno? in
      do throws(WormholeSystem.Errno) {
        try write.descriptor.writeAll([1])
        return nil
      } catch {
        return error
      }
    }
    #expect(failure == .brokenPipe)
  }
}
