import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

@Suite(
  "Who is who", .blocking, .needsEtcd)
struct SecurityTests {
  private func error(_ body: () throws -> Void) throws -> EtcdError {
    do {
      try body()
    } catch let error as EtcdError {
      return error
    }
    throw NeverHappened(what: "the call fails")
  }

  private func create(_ text: String) -> EtcdTransaction {
    EtcdTransaction(
      if: [.absent(Array(text.utf8))], then: [.put(key: Array(text.utf8), value: [1])])
  }

  /// Has what JSON has to escape.
  private static let password = #"p"w\é"#

  /// A member that asks for a password; the user "u" may use what begins with "p/".
  private func lockedNode() throws -> EtcdNode {
    let node = try EtcdNode()
    // Until the member answers.
    _ = try node.client().read(.key([1]), until: soon)
    for (path, json) in [
      ("user/add", #"{"name":"root","password":"r"}"#),
      ("user/grant", #"{"user":"root","role":"root"}"#),
      ("role/add", #"{"name":"r"}"#),
      (
        "role/grant",
        #"{"name":"r","perm":{"permType":"READWRITE","key":"cC8=","range_end":"cDA="}}"#
      ),
      ("user/add", #"{"name":"u","password":"p\"w\\é"}"#),
      ("user/grant", #"{"user":"u","role":"r"}"#),
      ("enable", "{}"),
    ] { try node.ask("auth/" + path, json) }
    return node
  }

  @Test("is shown by user and password, again when the token is not valid any longer")
  func passwords() throws {
    let node = try lockedNode()
    let client = node.client { $0.credentials = Credentials(user: "u", password: Self.password) }
    #expect(try client.commit(create("p/1"), until: soon).succeeded)
    let outside = try error { _ = try client.commit(create("q/1"), until: soon) }
    #expect(outside.code == .permissionDenied)
    // Has no watch, so that its next call is the first to hear that its token is unknown.
    let second = node.client { $0.credentials = Credentials(user: "u", password: Self.password) }
    #expect(try second.read(.key(Array("p/1".utf8)), until: soon).items.count == 1)

    let (heard, refused, later) = (HeardEvents(), HeardEvents(), HeardEvents())
    _ = client.watch(.prefix(Array("p/".utf8)), from: 1, onNews: heard.take)
    _ = client.watch(.prefix(Array("q/".utf8)), from: 1, onNews: refused.take)
    _ = client.watch(.prefix(Array("p/2".utf8)), from: 1, onNews: later.take)
    try eventually("the watch is refused") { refused.end != nil }
    #expect(refused.end?.code == .permissionDenied)
    // Afterwards no earlier token is valid.
    let answer = try node.ask("auth/authenticate", #"{"name":"root","password":"r"}"#)
    let token = try #require(answer.split(separator: "\"").first { $0.contains(".") })
    try node.ask("auth/disable", "{}", token: String(token))
    try node.ask("auth/enable", "{}")
    #expect(try second.commit(create("p/2"), until: soon).succeeded)
    try eventually("the watches go on") { heard.events.count == 2 && later.events.count == 1 }
    #expect(heard.end == nil)

    let nobody = try error { _ = try node.client().read(.key([1]), until: soon) }
    #expect(nobody.code == .credentialsRefused)
    let wrong = node.client { $0.credentials = Credentials(user: "u", password: "secret") }
    let refusal = try error { _ = try wrong.read(.key([1]), until: soon) }
    #expect(refusal.code == .credentialsRefused)
    // A password may be mended, so a watch waits for a while before it gives up.
    let unheard = HeardEvents()
    let patient = node.client {
      $0.credentials = Credentials(user: "u", password: "secret")
      // Longer than a check of a password takes.
      $0.patience = .seconds(1)
    }
    _ = patient.watch(.key([1]), from: 1, onNews: unheard.take)
    try eventually("the watch gives up") { unheard.end != nil }
    #expect(unheard.end?.code == .credentialsRefused)
    #expect(patient.watches.lostConnections > 1)
    #expect(!"\(refusal) \(Credentials(user: "u", password: "secret"))".contains("secret"))
  }

  @Test(
    "is shown by the token of an earlier process, as long as it and the password's file are valid")
  func keptToken() throws {
    let (node, directory) = (try lockedNode(), try TemporaryDirectory())
    let file = directory.path + "/password"
    func setPassword(_ text: String) throws {
      try FileDescriptor.open(file, [.writeOnly, .create, .truncate], mode: 0o600)
        .writeAll(Array(text.utf8))
    }
    try setPassword(Self.password + "\n")
    var location = EtcdLocation(endpoints: [node.endpoint], prefix: "p")
    (location.user, location.passwordFile) = ("u", file)
    /// Whether a new process proves the password.
    func asks() throws -> Bool {
      let transport = CountedRequests()
      var configuration = try location.configuration(keepingTokenIn: directory.path)
      configuration.transport = transport
      _ = try EtcdClient(configuration).read(.key(Array("p/1".utf8)), until: soon)
      return transport.paths.contains("auth/authenticate")
    }
    #expect(try asks() && !asks() && !asks())
    let tokens = directory.path + "/wormhole/tokens"
    let names = try FileDescriptor.open(tokens, [.readOnly, .directory]).entries().map(\.name.text)
    let kept = try #require(names.count == 1 ? tokens + "/" + names[0] : nil)
    #expect(try fileStatus(kept).permissions & 0o777 == 0o600)
    #expect(try fileStatus(tokens).permissions & 0o777 == 0o700)
    // Afterwards no earlier token is valid.
    let answer = try node.ask("auth/authenticate", #"{"name":"root","password":"r"}"#)
    let token = try #require(answer.split(separator: "\"").first { $0.contains(".") })
    try node.ask("auth/disable", "{}", token: String(token))
    try node.ask("auth/enable", "{}")
    #expect(try asks() && !asks())
    try FileDescriptor.open(kept, .readOnly).setPermissions(0o640)
    #expect(try asks() && !asks(), "others may have read or written it")
    try FileDescriptor.open(kept, [.writeOnly, .truncate]).writeAll(Array("x\ny\r\nz: 1\n".utf8))
    #expect(try asks() && !asks(), "it is foreign")
    // The token does not help a process with another password.
    try setPassword("secret")
    let refusal = try error { _ = try asks() }
    #expect(refusal.code == .credentialsRefused)
    try setPassword(Self.password)
    #expect(try asks())
  }

  @Test(
    "is shown by certificates; a wrong one is final, and says so",
    .disabled(if: Certificates.areMissing, "openssl is not installed"))
  func certificates() throws {
    let files = try Certificates()
    let path = files.directory.path
    let node = try files.startNode()
    let whole = files.security("client")
    let client = node.client { $0.security = whole }
    #expect(try client.commit(create("a"), until: soon).succeeded)
    let heard = HeardEvents()
    _ = client.watch(.key(Array("a".utf8)), from: 1, onNews: heard.take)
    try eventually("the watch hears") { heard.events.count == 1 }

    var (foreign, anonymous, keyless) = (whole, whole, whole)
    foreign.authorities = nil
    (anonymous.certificate, anonymous.key) = (nil, nil)
    keyless.key = path + "/none.key"
    try files.makeExpired()
    for security in [foreign, anonymous, keyless, files.security("old")] {
      let deadline = soon
      let refusal = try error {
        _ = try node.client { $0.security = security }.commit(create("b"), until: deadline)
      }
      #expect(refusal.code == .unreachable, "\(refusal)")
      #expect(refusal.reason.hasPrefix(node.endpoint))
      #expect(refusal.reason.contains("certificate") || refusal.reason.contains("key"))
      // Repeating it until the deadline would not help.
      #expect(.now < deadline)
    }
    let unheard = HeardEvents()
    let stranger = node.client {
      $0.security = foreign
      $0.patience = .milliseconds(200)
    }
    _ = stranger.watch(.key([1]), from: 1, onNews: unheard.take)
    try eventually("the watch gives up") { unheard.end != nil }
    #expect(unheard.end?.reason.contains("certificate") == true)
    let other = node.endpoint.replacing("127.0.0.1", with: "localhost")
    let named = node.client {
      $0.endpoints = [other]
      $0.security = whole
    }
    let refusal = try error { _ = try named.commit(create("b"), until: soon) }
    #expect(refusal.reason.contains("SSL"), "\(refusal)")
    #expect(try client.read(.key(Array("b".utf8)), until: soon).items.isEmpty)
  }

  @Test(
    "needs a certificate without a common name where etcd has users, and etcd's words say so at once",
    .disabled(if: Certificates.areMissing, "openssl is not installed"))
  func usersWithCertificates() throws {
    let files = try Certificates()
    let node = try files.startNode()
    func client(_ name: String) -> EtcdClient {
      node.client {
        $0.security = files.security(name)
        $0.credentials = Credentials(user: "root", password: "r")
      }
    }
    _ = try node.client { $0.security = files.security("nameless") }.read(.key([1]), until: soon)
    try files.addUsers(node)
    #expect(try client("nameless").commit(create("a"), until: soon).succeeded)
    let deadline = soon
    let refusal = try error { _ = try client("client").read(.key([1]), until: deadline) }
    #expect(refusal.code == .credentialsRefused)
    #expect(refusal.reason.hasPrefix(EtcdError.commonName), "\(refusal)")
    #expect(.now < deadline)
  }
}
