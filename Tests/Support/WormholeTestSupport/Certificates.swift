package import WormholeEtcd
import WormholeSystem
import WormholeToolkit
package import WormholeWorkshop

/// Certificates of an authority of the test's own.
package struct Certificates {
  package static let areMissing: Bool = {
    do {
      try run(["version"])
      return false
    } catch {
      print("skipped: no openssl here (Debian: apt-get install openssl): \(error)")
      return true
    }
  }()

  package let directory: TemporaryDirectory
  package var authority: String { directory.path + "/authority.pem" }

  package init() throws {
    directory = try TemporaryDirectory()
    try Self.run(Self.request("authority", in: directory.path))
    for name in ["server", "client", "nameless"] {
      try Self.run(
        Self.request(name, in: directory.path) + [
          "-CA", authority, "-CAkey", "\(directory.path)/authority.key",
          "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE",
        ])
    }
  }

  /// Starts a member that wants a certificate of each client.
  package func startNode() throws -> EtcdNode {
    try EtcdNode(
      scheme: "https",
      flags: [
        "--cert-file", "\(directory.path)/server.pem", "--key-file", "\(directory.path)/server.key",
        "--trusted-ca-file", authority, "--client-cert-auth",
      ])
  }

  /// What a client with one of the certificates needs: "client", or "nameless", without a common name.
  package func security(_ name: String) -> TransportSecurity {
    TransportSecurity(
      authorities: authority, certificate: "\(directory.path)/\(name).pem",
      key: "\(directory.path)/\(name).key")
  }

  /// Gives a member users, with a root whose password is "r".
  ///
  /// - Parameter more: further calls of its interface, before they count.
  package func addUsers(_ node: EtcdNode, and more: [(call: String, json: String)] = []) throws {
    let calls = [
      ("user/add", #"{"name":"root","password":"r"}"#),
      ("user/grant", #"{"user":"root","role":"root"}"#),
    ]
    for (call, json) in calls + more + [("enable", "{}")] {
      let request = HTTPRequest(
        url: "\(node.endpoint)/v3/auth/\(call)", content: Array(json.utf8),
        security: security("nameless"))
      let answer = try HTTPClient().post(request, maximumBytes: 1 << 20, until: soon)
      guard answer.status == 200 else { throw NeverHappened(what: "\(call): \(answer.status)") }
    }
  }

  /// Makes a client's certificate "old", whose time was over yesterday.
  package func makeExpired() throws {
    let name = directory.path + "/old"
    try Self.run(
      ["req", "-new"] + Self.key
        + ["-subj", "/CN=old", "-keyout", name + ".key", "-out", name + ".csr"])
    try Self.run([
      "x509", "-req", "-in", name + ".csr", "-CA", authority, "-CAkey",
      "\(directory.path)/authority.key", "-CAcreateserial", "-days", "-1", "-out", name + ".pem",
    ])
  }

  private static let key = [
    "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
  ]

  private static func request(_ name: String, in directory: String) -> [String] {
    ["req", "-x509", "-days", "2"] + key + [
      "-subj", name == "nameless" ? "/O=cinema" : "/CN=\(name)", "-keyout",
      "\(directory)/\(name).key", "-out", "\(directory)/\(name).pem",
    ]
  }

  private static func run(_ arguments: [String]) throws {
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    let child = try ChildProcess(
      "openssl", arguments, input: null.rawValue, output: null.rawValue, errors: null.rawValue)
    let end = try child.wait(until: soon)
    guard end == .exited(0) else {
      throw NeverHappened(
        what: "openssl \(arguments.first ?? "") succeeds: \(String(describing: end))")
    }
  }
}
