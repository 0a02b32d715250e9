import Testing
import WormholeEtcd
import WormholeTestSupport

// The gate installs both.
@Suite(
  "What doctor says about certificates and rights", .blocking,
  .disabled(if: EtcdNode.isMissing || Certificates.areMissing, "etcd or openssl is not installed"))
struct CertificateFindingsTests {
  @Test("It says what certificate, what key and what right is needed")
  func findings() throws {
    let files = try Certificates()
    let session = try Session()
    let path = files.directory.path
    let node = try files.startNode()
    let security = files.security("nameless")
    _ = try node.client { $0.security = security }.read(.key([1]), until: soon)
    let whole = #""key":"AA==","range_end":"AA==""#
    try files.addUsers(
      node,
      and: [
        ("role/add", #"{"name":"reader"}"#),
        ("role/grant", #"{"name":"reader","perm":{"permType":"READ",\#(whole)}}"#),
        ("user/add", #"{"name":"looker","password":"r"}"#),
        ("user/grant", #"{"user":"looker","role":"reader"}"#),
      ])
    let host = node.endpoint.split(separator: "/")[1]
    func place(_ user: String, _ certificate: String) -> String {
      "etcds://\(user)@\(host)/c?ca=\(files.authority)&cert=\(path)/\(certificate).pem"
        + "&key=\(path)/\(certificate).key"
    }
    func doctor(_ place: String, status: Int32 = 1) throws -> String {
      let said = try session.shell(
        "WORMHOLE_ETCD_PASSWORD=r COLUMNS=2000 wormhole --container '\(place)' doctor")
      #expect(said.status == status, "\(said)")
      return said.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
    let made = try session.shell(
      "WORMHOLE_ETCD_PASSWORD=r wormhole --container '\(place("root", "nameless"))' send k 1")
    #expect(made.status == 0, "\(made)")

    let named = try doctor(place("root", "client"))
    #expect(named.contains("must have no common name (CN)"), "\(named)")
    #expect(named.contains("-subj /O=NAME") && named.contains(EtcdError.commonName), "\(named)")
    // All were made for two days.
    let good = try doctor(place("root", "nameless"), status: 0)
    for place in [files.authority, "\(path)/nameless.pem", node.endpoint] {
      #expect(good.contains("The certificate ends at") && good.contains(place), "\(good)")
    }
    #expect(!good.contains("common name"), "\(good)")
    let reader = try doctor(place("looker", "nameless"))
    #expect(reader.contains("Cannot write in the container"), "\(reader)")
    #expect(reader.contains("grant-permission ROLE readwrite"), "\(reader)")
    let missing = try doctor(place("root", "none"))
    #expect(missing.contains("\(path)/none.pem") && missing.contains("cert"), "\(missing)")
    try files.makeExpired()
    let expired = try doctor(place("root", "old"))
    #expect(expired.contains("openssl x509 -noout -issuer -dates"), "\(expired)")
    let open = try session.shell("chmod 644 '\(path)/nameless.key'")
    #expect(open.status == 0)
    let readable = try doctor(place("root", "nameless"))
    #expect(readable.contains("others may use it"), "\(readable)")
    #expect(readable.contains("chmod 600 \(path)/nameless.key"), "\(readable)")
  }
}
