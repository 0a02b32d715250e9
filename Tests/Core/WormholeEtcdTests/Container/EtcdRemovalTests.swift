import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

@Suite("The removal of a container on etcd", .blocking, .needsEtcd)
struct EtcdRemovalTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func container(_ machine: String, below name: String = "") throws -> SharedContainer {
    var location = try #require(try TestEngine.etcd.location(of: directory.path))
    location.prefix += name
    return try SharedContainer(etcd: location, companion: directory.path + "/" + machine)
  }

  @Test("is refused while it has another container below its prefix", arguments: ["/sub", "/a/b"])
  func nested(below name: String) throws {
    let (outer, inner) = (try container("a"), try container("b", below: name))
    // Not one of these.
    try outer.value("format").replace(with: 1)
    try inner.value("x").replace(with: 1)
    let error = #expect(throws: AppGroupError.self) { try ContainerRemoval(of: outer).run() }
    #expect(error?.reason.contains(name) == true, "\(error as Any)")
    #expect(try inner.value("x").read() == 1)
    _ = try ContainerRemoval(of: inner).run()
    _ = try ContainerRemoval(of: outer).run()
  }

  @Test(
    "ends the sessions of the processes that go on with it, so that none keeps a role unknowingly")
  func sessions() throws {
    let (here, there) = (try container("here"), try container("there"))
    let role = try here.presence("r").enterExclusively()
    let etcd = try #require(there.engine as? EtcdContainer)
    let keys = try etcd.client.read(etcd.keys, until: soon).items
    let lease = try #require(keys.map(\.lease).first { $0 != 0 })
    var removal = ContainerRemoval(of: there)
    removal.allowsUse = true
    _ = try removal.run()
    #expect(try etcd.client.lifetime(ofLease: lease, until: soon) == nil)
    #expect(throws: AppGroupError.self) { try role.confirm() }
  }
}
