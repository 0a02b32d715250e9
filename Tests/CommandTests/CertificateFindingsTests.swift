import Testing
import WormholeEtcd
import WormholeTestSupport

@Suite(
  "What doctor says about certificates and rights", .blocking,
  .disabled(if: EtcdNode.isMissing || Certificates.areMissing, "etcd or openssl is not installed"))
struct CertificateFindingsTests {
  @Test("It says what certificate, what key and what right is needed")
  func findings() throws {
    let files = try Certificates()
    let session = try Session()
    let path = files.directory.path
    let node = try EtcdNode(
      scheme: "https",
      flags: [
        "--cert-file", "\(path)/server.pem", "--key-file", "\(path)/server.key",
        "--trusted-ca-file", files.authority, "--client-cert-auth",
      ])
    let security = TransportSecurity(
      authorities: files.authority, certificate: "\(path)/nameless.pem",
      key: "\(path)/nameless.key")
    _ = try node.client { $0.security = security }.read(.key([1]), until: soon)
    let whole = #""key":"AA==","range_end":"AA==""#
    for (call, json) in [
      ("user/add", #"{"name":"root","password":"r"}"#),
      ("user/grant", #"{"user":"root","role":"root"}"#), ("role/add", #"{"name":"reader"}"#),
      ("role/grant", #"{"name":"reader","perm":{"permType":"READ",\#(whole)}}"#),
      ("user/add", #"{"name":"looker","password":"r"}"#),
      ("user/grant", #"{"user":"looker","role":"reader"}"#), ("enable", "{}"),
    ] {
      let request = HTTPRequest(
        url: "\(node.endpoint)/v3/auth/\(call)", content: Array(json.utf8), security: security)
      let answer = try HTTPClient().post(request, maximumBytes: 1 << 20, until: soon)
      #expect(answer.status == 200, "\(call)")
    }
    let host = node.endpoint.split(separator: "/")[1]
    func place(_ user: String, _ certificate: String) -> String {
      "etcds://\(user)@\(host)/c?ca=\(files.authority)&cert=\(path)/\(certificate).pem"
        + "&key=\(path)/\(certificate).key"
    }
    func doctor(_ place: String) throws -> String {
      let said = try session.shell(
        "WORMHOLE_ETCD_PASSWORD=r COLUMNS=2000 wormhole --container '\(place)' doctor")
      #expect(said.status == 1, "\(said)")
      return said.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
    let made = try session.shell(
      "WORMHOLE_ETCD_PASSWORD=r wormhole --container '\(place("root", "nameless"))' send k 1")
    #expect(made.status == 0, "\(made)")

    let named = try doctor(place("root", "client"))
    #expect(named.contains("must have no common name (CN)"), "\(named)")
    #expect(named.contains("-subj /O=NAME") && named.contains(EtcdError.commonName), "\(named)")
    let reader = try doctor(place("looker", "nameless"))
    #expect(reader.contains("Cannot write in the container"), "\(reader)")
    #expect(reader.contains("grant-permission ROLE readwrite"), "\(reader)")
    let missing = try doctor(place("root", "none"))
    #expect(missing.contains("\(path)/none.pem") && missing.contains("cert"), "\(missing)")
    let open = try session.shell("chmod 644 '\(path)/nameless.key'")
    #expect(open.status == 0)
    let readable = try doctor(place("root", "nameless"))
    #expect(readable.contains("others may use it"), "\(readable)")
    #expect(readable.contains("chmod 600 \(path)/nameless.key"), "\(readable)")
  }
}
