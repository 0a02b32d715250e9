import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// What values promise only on etcd; the rest is in the suites that run on both engines.
@Suite("A value on etcd", .blocking, .needsEtcd)
struct EtcdValueTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let etcd: EtcdContainer

  init() throws {
    let directory = try TemporaryDirectory()
    self.directory = directory
    container = try TestEngine.$current.withValue(.etcd) { try directory.container() }
    guard let etcd = container.engine as? EtcdContainer else { throw Errno.invalidArgument }
    self.etcd = etcd
  }

  @Test("is changed by others while a writer is stopped, whose change then begins again")
  func stoppedWriter() throws {
    let value = container.value("x")
    try value.replace(with: 1)
    let other = try TestEngine.$current.withValue(.etcd) { try Participant(directory.path) }
    #expect(try other.ask("hold x 10") == "holding")
    try other.send(.stop)
    try value.replace(with: 5)
    #expect(try value.read() == 5)
    try other.send(.continue)
    // Its closure has seen 1, and runs once more.
    #expect(try other.ask("go on") == "holding")
    #expect(try other.ask("go on") == "done")
    #expect(try value.read() == 15)
  }

  @Test("has a limit of its own, which the error names")
  func limit() throws {
    let value = container.value("x")
    try value.replace(with: .string(longText(1_000_000)))
    let error = #expect(throws: WormholeError.self) {
      try value.replace(with: .string(longText(1_100_000)))
    }
    let reason = error?.reason ?? ""
    #expect(error?.code == .tooLarge && reason.contains("1048576"))
    #expect(try value.read()?.stringValue?.utf8.count == 1_000_000)
    let many = (0..<200).map { "\($0)" }
    let tooMany = #expect(throws: WormholeError.self) { try container.update(many) { _ in } }
    #expect(tooMany?.code == .tooLarge)
  }

  @Test(
    "expires when it should, although the lease for that ends before it is used",
    arguments: [Duration.milliseconds(1), .seconds(600)])
  func leaseGone(lifetime: Duration) throws {
    let ending = LeaseEnding()
    let container = try SharedContainer(
      try EtcdContainer.unopened(etcd.location, through: ending), companion: directory.path + "/a")
    let value = container.value("x")
    try value.replace(with: 1)
    try value.replace(with: 2, expiresAfter: lifetime)
    #expect(ending.hasEndedOne || lifetime < .seconds(1))
    if lifetime < .seconds(1) {
      try eventually("it expires") { try value.read() == nil }
    } else {
      #expect(try value.read() == 2)
    }
  }

  @Test(
    "has one watch for all of its observers, until the last has ended, and each hears each change")
  func observers() throws {
    let value = container.value("x")
    let watches = etcd.client.watches
    let queue = DispatchQueue(label: "observers")
    let heard = (0..<8).map { _ in Heard<PropertyListValue?>() }
    var tokens: [ObservationToken] = []
    func observe() throws {
      let own = heard[tokens.count]
      tokens.append(
        try value.observe(on: queue) { snapshot in
          do {
            own.add(try snapshot.propertyList())
          } catch {
            Issue.record(error)
          }
        })
    }
    try value.replace(with: 0)
    try observe()
    for number in 1...6 {
      try value.replace(with: PropertyListValue(number))
      // The watch may be behind, but what was written before an observation began is not its news.
      try observe()
      for (observer, own) in heard.prefix(number).enumerated() {
        try eventually("observer \(observer) hears \(number)") {
          own.all == (observer + 1...number).map { PropertyListValue($0) }
        }
      }
      #expect(watches.count == 1)
    }
    tokens[0].cancel()
    try value.replace(with: 7)
    try eventually("the others hear 7") { heard[1..<7].allSatisfy { $0.all.last == 7 } }
    #expect(heard[0].all.last == 6)
    for token in tokens { token.cancel() }
    try eventually("the watch has ended") { watches.count == 0 }
    try observe()
    try value.replace(with: 8)
    try eventually("a later observer hears 8") { heard[7].all == [8] }
    #expect(watches.count == 1)
  }

  @Test("costs one round trip for each change, whichever object makes it")
  func roundTrips() throws {
    let requests = CountedRequests()
    let container = try SharedContainer(
      try EtcdContainer.unopened(etcd.location, through: requests), companion: directory.path + "/a"
    )
    func count(_ change: () throws -> Void) rethrows -> Int {
      let before = requests.paths.count
      try change()
      return requests.paths.count - before
    }
    // Before its first write a process asks the member who it is.
    _ = try container.value("y").read()
    #expect(try count { try container.value("x").replace(with: 1) } == 1)
    #expect(try count { try container.value("x").replace(with: 2) } == 1)
    #expect(try count { try container.value("x").update { $0 = 3 } } == 1)
    #expect(try count { try container.value("new").replace(with: 1) } == 1)
    #expect(try container.value("x").read() == 3)
    // What others have changed, or what this process has not seen, takes one more.
    try self.container.value("x").replace(with: 4)
    #expect(try count { try container.value("x").update { $0 = 5 } } == 2)
    try self.container.value("old").replace(with: 1)
    #expect(try count { try container.value("old").replace(with: 2) } == 2)
    #expect(try container.value("x").read() == 5 && container.value("old").read() == 2)
  }

  @Test("that this process has not seen is replaced once, though the answer is lost")
  func unseen() throws {
    try container.value("x").replace(with: 1)
    let requests = CountedRequests()
    let other = try SharedContainer(
      try EtcdContainer.unopened(etcd.location, through: requests), companion: directory.path + "/a"
    )
    _ = try other.value("y").read()
    requests.loseNextAnswer(of: "kv/txn")
    try other.value("x").replace(with: 2)
    #expect(try container.value("x").read() == 2)
    requests.loseNextAnswer(of: "kv/txn")
    try other.value("new").replace(with: 3)
    #expect(try container.value("new").read() == 3)
  }

  @Test("is observed beyond a compaction that was faster than the watch")
  func compaction() throws {
    // On a member of its own, because others need their history.
    let node = try EtcdNode()
    let container = try SharedContainer(
      etcd: EtcdLocation(endpoints: [node.endpoint], prefix: "test"), companion: directory.path)
    guard let etcd = container.engine as? EtcdContainer else { throw Errno.invalidArgument }
    let value = container.value("x")
    try value.replace(with: 0)
    let mirror = try EtcdMirror(etcd, range: .key(etcd.key(.value, "x"))) { _ in }
    defer { mirror.cancel() }
    for number in 1...20 { try value.replace(with: PropertyListValue(number)) }
    let revision = try etcd.client.read(.key(etcd.formatKey), until: soon).revision
    try node.ask("kv/compaction", "{\"revision\": \"\(revision)\"}")
    // Its history is gone, so the watch is refused, and the mirror reads again.
    let late = try EtcdMirror(etcd, range: .key(etcd.key(.value, "x"))) { _ in }
    defer { late.cancel() }
    try value.replace(with: 21)
    for one in [mirror, late] {
      try eventually("it has the last value") {
        one.item(etcd.key(.value, "x"))?.modified
          == (try etcd.client.read(
            .key(etcd.key(.value, "x")), until: soon
          ).items.first?.modified)
      }
    }
  }

  @Test("is listed among more names than one answer has, whatever characters they have")
  func names() throws {
    // The thousandth, with which a request's answer ends, is a beginning of the next two.
    let names = (0..<1_300).map { "a\(1_000 + $0 / 3)\(["", "-", "."][$0 % 3])" }
    for some in stride(from: 0, to: names.count, by: 100) {
      let puts = names[some..<min(some + 100, names.count)].map {
        EtcdTransaction.Operation.put(key: etcd.key(.value, $0), value: [1])
      }
      let always = EtcdTransaction.Condition.version(of: etcd.formatKey, -1, is: .greater)
      _ = try etcd.until(soon).repeating(EtcdTransaction(if: [always], then: puts))
    }
    #expect(try Set(container.valueIdentifiers()) == Set(names))
    #expect(try container.valueIdentifiers().count == Set(names).count)
  }

  @Test("that somebody else has put is a value with its version, or says what is wrong with it")
  func foreign() throws {
    let key = etcd.key(.value, "x")
    for (bytes, isValue) in [([UInt8](), false), (Array("short".utf8), false)] {
      try put(bytes, key)
      #expect(try (container.value("x").version() != nil) == isValue)
      #expect(try container.value("x").read() == nil)
    }
    try put([UInt8](repeating: 7, count: 16) + Array("no property list".utf8), key)
    let error = #expect(throws: WormholeError.self) { try container.value("x").read() }
    #expect(error?.code == .damaged)
    try container.value("x").replace(with: 3)
    #expect(try container.value("x").read() == 3)
  }

  @Test("cannot be read or changed without etcd: the error names what each member said")
  func unreachable() throws {
    let node = try EtcdNode()
    let elsewhere = try SharedContainer(
      etcd: EtcdLocation(endpoints: [node.endpoint], prefix: "x"), companion: directory.path)
    try elsewhere.value("x").replace(with: 1)
    node.end()
    let deadline = ContinuousClock.now + .milliseconds(300)
    let error = #expect(throws: WormholeError.self) {
      try elsewhere.value("x").update(until: deadline) { $0 = 2 }
    }
    let code = try #require(error?.code)
    #expect([.clusterUnreachable, .outcomeUnknown].contains(code), "\(String(describing: error))")
    let reason = error?.reason ?? ""
    #expect(reason.contains(node.endpoint))
  }

  private func put(_ bytes: [UInt8], _ key: [UInt8]) throws {
    let always = EtcdTransaction.Condition.version(of: key, -1, is: .greater)
    _ = try etcd.until(soon).repeating(
      EtcdTransaction(if: [always], then: [.put(key: key, value: bytes)]))
  }
}

@Suite("A location on etcd", .blocking)
struct EtcdLocationTests {
  @Test("is read from its text, and shows no password")
  func parsing() throws {
    let location = try EtcdLocation(
      "etcds://till:s%40cret@h1,h2:1234,[::1]/cinema/a?ca=ca.pem&ttl=7")
    #expect(location.endpoints == ["https://h1:2379", "https://h2:1234", "https://[::1]:2379"])
    #expect(location.prefix == "cinema/a" && location.user == "till")
    #expect(location.authorities == "ca.pem" && location.lifetime == .seconds(7))
    #expect(location.description == "etcds://h1:2379,h2:1234,[::1]:2379/cinema/a")
    for text in ["\(location)", String(reflecting: location)] {
      #expect(!text.contains("s@cret") && !text.contains("s%40cret"), "\(text)")
    }
    #expect(try EtcdLocation("etcd://h/x/").prefix == "x")
    #expect(try EtcdLocation("Etcds://u:s@cret@h/x%40y").description == "etcds://h:2379/x@y")
    #expect(Engines.withoutPassword("Etcds://u:p/a@b?c@h/x") == "Etcds://u@h/x")
    #expect(Engines.isMeant(by: "ETCD://h/x") && !Engines.isMeant(by: "/etcd://h/x"))
  }

  @Test("with a key or a password that others may use is refused", arguments: ["key", "password"])
  func secrets(_ kind: String) throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/secret"
    _ = try FileDescriptor.open(file, [.writeOnly, .create], mode: 0o600)
    var location = EtcdLocation(endpoints: ["http://127.0.0.1:1"], prefix: "x")
    if kind == "key" {
      location.key = file
    } else {
      (location.user, location.passwordFile) = ("u", file)
    }
    // The group's members may, as in a container of several users.
    for (mode, isRefused) in [(0o600, false), (0o640, false), (0o644, true), (0o602, true)] {
      try FileDescriptor.open(file, .readOnly).setPermissions(UInt32(mode))
      do {
        _ = try location.configuration(keepingTokenIn: nil)
        #expect(!isRefused)
      } catch let error as WormholeError {
        #expect(isRefused && error.code == .permissionDenied && error.path == file)
        #expect(error.remedy == "chmod 600 \(file)")
      }
    }
  }

  @Test(
    "that is malformed is refused with a sentence that has no password",
    arguments: [
      "etcd://", "etcd:///x", "etcd://h1,/x", "etcd://h1", "etcd://u:secret@/x", "etcd://h/x?ttl=1",
      "etcd://h/x?colour=red", "etcd://u:secret@h h/x", "etcd://@h/x", "http://h/x",
      "etcd://h/x?ca", "etcds://u:p/secret@h/x", "etcds://u:12/secret@h/x",
      "Etcds://u:secret@h h/x", "etcd://[::1/x",
      "etcds://u:secret%zz@h/x", "etcds://u:p?secret@h/x", "etcds://u:1/x?secret@h/x",
    ])
  func refusing(_ text: String) {
    let error = #expect(throws: WormholeError.self) { try EtcdLocation(text) }
    #expect(error?.code == .notSupported)
    #expect(!"\(String(describing: error))".contains("secret"))
  }
}

/// Ends the first lease between its grant and its use, as a long pause of the writer would.
private final class LeaseEnding: EtcdTransport {
  private struct Lease: Decodable {
    enum CodingKeys: String, CodingKey { case id = "ID" }
    let id: String
  }

  private let client = HTTPClient()
  private let hasEnded = Atomic(false)

  var hasEndedOne: Bool { hasEnded.load(ordering: .acquiring) }

  func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    let answer = try client.post(request, maximumBytes: maximumBytes, until: deadline)
    if request.url.hasSuffix("/lease/grant"), !hasEndedOne {
      let lease = Result { try JSONDecoder().decode(Lease.self, from: Data(answer.content)) }
      // Then none has ended, and the test fails.
      guard case .success(let lease) = lease else { return answer }
      var end = request
      end.url = String(request.url.dropLast(5)) + "revoke"
      end.content = Array(#"{"ID":"\#(lease.id)"}"#.utf8)
      let ended = try client.post(end, maximumBytes: maximumBytes, until: deadline)
      hasEnded.store(ended.status == 200, ordering: .releasing)
    }
    return answer
  }
}
