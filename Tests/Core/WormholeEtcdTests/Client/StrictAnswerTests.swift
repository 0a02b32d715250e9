import Synchronization
import Testing
import WormholeTestSupport

@testable import WormholeEtcd

/// Answers each request with the same, and counts them.
private final class Stub: EtcdTransport {
  private let answer: HTTPAnswer
  private let asked = Atomic(0)
  private let longest = Atomic(0)
  private let latest = Mutex(ContinuousClock.now)

  init(_ content: String, status: Int = 200) {
    answer = HTTPAnswer(status: status, content: Array(content.utf8))
  }

  var count: Int { asked.load(ordering: .relaxed) }
  /// The longest answer that was accepted.
  var maximumBytes: Int { longest.load(ordering: .relaxed) }
  /// Until when the last answer was waited for.
  var deadline: ContinuousClock.Instant { latest.withLock { $0 } }

  func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    asked.add(1, ordering: .relaxed)
    longest.store(maximumBytes, ordering: .relaxed)
    latest.withLock { $0 = deadline }
    return request.url.hasSuffix("maintenance/status")
      ? HTTPAnswer(status: 200, content: Array("{\(Self.header)}".utf8)) : answer
  }

  static let header =
    #""header":{"cluster_id":"1","member_id":"2","revision":"9","raft_term":"1"}"#
}

@Suite("Strict answers", .blocking) struct StrictAnswerTests {
  private func client(_ stub: Stub) -> EtcdClient {
    var configuration = EtcdConfiguration(endpoints: ["http://127.0.0.1:1"])
    configuration.transport = stub
    configuration.firstPatience = .milliseconds(50)
    return EtcdClient(configuration)
  }

  @Test("the only member may take half of a call's time, one of several its patience")
  func patience() throws {
    let stub = Stub("{\(Stub.header)}")
    let begin = ContinuousClock.now
    _ = try client(stub).read(.key([1]), until: begin + .seconds(30))
    #expect(stub.deadline >= begin + .seconds(15))
    var configuration = EtcdConfiguration(endpoints: ["http://127.0.0.1:1", "http://127.0.0.1:2"])
    configuration.transport = stub
    _ = try EtcdClient(configuration).read(.key([1]), until: .now + .seconds(30))
    #expect(stub.deadline <= .now + configuration.patience)
  }

  private func error(_ answer: String, _ body: (EtcdClient) throws -> Void) -> EtcdError? {
    do {
      try body(client(Stub(answer)))
    } catch {
      return error as? EtcdError
    }
    return nil
  }

  private func response(_ operation: String) -> String {
    let header = #"{"header":{"revision":"9"}}"#
    return #"{"\#(operation)":\#(header)}"#
  }

  @Test("a transaction's answer has a header and a result of its kind for each operation")
  func transactions() throws {
    let transaction = EtcdTransaction(
      if: [.absent([1])], then: [.put(key: [1], value: []), .delete(.key([2])), .read(.key([3]))],
      otherwise: [.key([1])])
    let (put, delete, read) = (
      response("response_put"), response("response_delete_range"), response("response_range")
    )
    func commit(_ members: String) -> EtcdError? {
      error("{\(members)}") { _ = try $0.commit(transaction, until: .now + .milliseconds(200)) }
    }
    let (header, done) = (Stub.header, #""succeeded":true"#)
    #expect(commit("\(header),\(done),\"responses\":[\(put),\(delete),\(read)]") == nil)
    #expect(commit("\(header),\"responses\":[\(read)]") == nil)
    let odd = [
      "", done, "\(header)", "\(header),\(done)", "\(header),\(done),\"responses\":[\(put)]",
      "\(header),\(done),\"responses\":[\(put),\(delete),\(read),\(read)]",
      "\(header),\(done),\"responses\":[\(delete),\(put),\(read)]",
      "\(header),\(done),\"responses\":[{},\(delete),\(read)]",
      "\(header),\"responses\":[\(put),\(delete),\(read)]", "\(header),\"responses\":[\(put)]",
      "\(done),\"responses\":[\(put),\(delete),\(read)]",
      #""header":{"cluster_id":"1","revision":"9"},"responses":[\#(read)]"#,
      #""header":{"member_id":"1","revision":"9"},"responses":[\#(read)]"#,
      #""header":{"cluster_id":"1","member_id":"2"},"responses":[\#(read)]"#,
      #""header":{"cluster_id":"0","member_id":"2","revision":"9"},"responses":[\#(read)]"#,
      #""header":{"cluster_id":"1","member_id":"2","revision":"-9"},"responses":[\#(read)]"#,
      #""header":{"cluster_id":"1","member_id":"2","revision":"9223372036854775807"}"#
        + ",\"responses\":[\(read)]",
    ]
    // It was sent once, and it is not known whether it was made.
    for members in odd { #expect(commit(members)?.code == .outcomeUnknown, "\(members)") }
  }

  private func item(_ key: String, _ created: Int = 3, _ modified: Int = 4) -> String {
    #"{"key":"\#(key)","create_revision":"\#(created)","mod_revision":"\#(modified)","version":"1"}"#
  }

  @Test("a page has the keys that were asked for, in their order, with revisions that there are")
  func pages() throws {
    func read(_ members: String) -> EtcdError? {
      error("{\(Stub.header),\(members)}") {
        _ = try $0.read(.prefix([97]), until: .now + .milliseconds(30))
      }
    }
    // "a" and "ab".
    #expect(read("\"kvs\":[\(item("YQ==")),\(item("YWI="))],\"count\":\"2\"") == nil)
    let odd = [
      "\"kvs\":[\(item("YWI=")),\(item("YQ=="))]", "\"kvs\":[\(item("YQ==")),\(item("YQ=="))]",
      "\"kvs\":[\(item("Yg=="))]", "\"kvs\":[\(item("YQ==", 5, 4))]",
      "\"kvs\":[\(item("YQ==", 3, 10))]", "\"kvs\":[{\"key\":\"YQ==\"}]", "\"more\":true",
      // For ever the same page.
      "\"kvs\":[\(item("YQ=="))],\"more\":true", "\"kvs\":[null]", "\"kvs\":{}",
    ]
    for members in odd { #expect(read(members)?.code == .unreachable, "\(members)") }
  }

  @Test("what never answered as etcd is given up early, and what it said is shown on one line")
  func others() {
    let html =
      "<html>\n\u{1B}[31m\u{202E}<b>Not\u{9B} here</b>" + String(repeating: "x", count: 999)
    for (stub, isFinal) in [
      (Stub("{}"), false), (Stub(html), false), (Stub(html, status: 404), true),
      (Stub("", status: 302), true),
    ] {
      let begin = ContinuousClock.now
      do {
        _ = try client(stub).read(.key([1]), until: begin + .seconds(600))
        Issue.record("it is no etcd")
      } catch {
        #expect(error.code == .unreachable)
        #expect(error.reason.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value < 127 })
        #expect(error.reason.count < 400)
      }
      #expect(stub.count == 1 || !isFinal)
      #expect(stub.count < 100)
    }
  }

  @Test("of users and certificates etcd's own words are shown, at once")
  func commonName() {
    let said =
      "CommonName of client sending a request against gateway will be ignored and not used as expected\n"
    let stub = Stub(said, status: 400)
    do {
      _ = try client(stub).read(.key([1]), until: .now + .seconds(600))
      Issue.record("it was refused")
    } catch {
      #expect(error.code == .credentialsRefused)
      #expect(error.reason == said.dropLast())
    }
    #expect(stub.count == 1)
  }

  @Test("an answer takes little memory: its length is limited by what was asked, and its values")
  func limits() throws {
    let stub = Stub("{\(Stub.header)}")
    let client = client(stub)
    _ = try client.page(.prefix([1]), limit: 100, until: soon)
    #expect(stub.maximumBytes == 10 << 20)
    _ = try client.page(.key([1]), limit: 1, until: soon)
    #expect(stub.maximumBytes <= 5 << 19)
    _ = try client.count(.prefix([1]), until: soon)
    #expect(stub.maximumBytes == 2 << 20)
    // There may be some 260,000 of each; only a transaction's answer has the first.
    #expect(MemoryLayout<WireResponse>.stride <= 200 && MemoryLayout<WireKeyValue>.stride <= 200)
    #expect(
      error("{\(Stub.header),\"responses\":[0]}") { _ = try $0.item([1], until: soon) } == nil)
    // The decoder needs some 60 bytes for each value.
    for part in ["[]", "null", "{\"b\":1}", "[[],[]]"] {
      let many = Array((Array(repeating: part, count: 1 << 20).joined(separator: ",")).utf8)
      #expect(!EtcdWire.isPlausible([91] + many + [93]), "\(part)")
    }
    let items = Array(repeating: item("YWJjZGVmZ2hpag=="), count: 1_000).joined(separator: ",")
    #expect(EtcdWire.isPlausible(Array("{\(Stub.header),\"kvs\":[\(items)]}".utf8)))
    let events = Array(
      repeating: #"{"type":"DELETE","kv":{"key":"Y2luZW1hL3YvYQ==","mod_revision":"12"}}"#,
      count: 80_000
    ).joined(separator: ",")
    #expect(EtcdWire.isPlausible(Array("{\"events\":[\(events)]}".utf8)))
  }
}
