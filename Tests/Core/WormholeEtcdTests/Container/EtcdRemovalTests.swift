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
    let error = #expect(throws: WormholeError.self) { try ContainerRemoval(of: outer).run() }
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
    #expect(throws: WormholeError.self) { try role.confirm() }
  }

  // process A        process B
  // open             open
  // write a, log     remove the container
  // each change
  @Test("leaves nothing that a process could write to, until one opens the container again")
  func writing() throws {
    let (here, there) = (try container("here"), try container("there"))
    let queue = try here.queue("q").sender("s")
    try here.value("a").replace(with: 1)
    try here.log("l").append(1)
    let etcd = try #require(here.engine as? EtcdContainer)
    _ = try ContainerRemoval(of: there).run()

    let changes: [(String, () throws -> Void)] = [
      ("replace", { try here.value("a").replace(with: 2) }),
      ("a new value", { try here.value("b").replace(with: 2) }),
      ("update", { try here.value("c").update { $0 = 2 } }),
      ("values", { try here.update(["d", "e"]) { $0 = ["d": 1, "e": 2] } }),
      ("enqueue", { try queue.enqueue(2) }),
      ("append", { try here.log("l").append(2) }),
      ("a new log", { try here.log("m").append(2) }),
      ("post", { try here.notification("n").post() }),
      ("enter", { _ = try here.presence("p").enter() }),
    ]
    for (name, change) in changes {
      let error = #expect(throws: WormholeError.self, "\(name)") { try change() }
      #expect(error?.code == .containerMissing, "\(name): \(error as Any)")
      let left = try etcd.client.read(etcd.keys, until: soon).items
      #expect(left.isEmpty, "\(name) left \(left.map { etcd.location(of: $0.key) })")
    }

    let again = try container("here")
    try again.value("b").replace(with: 3)
    #expect(try again.value("b").read() == 3)
  }

  // process A        process B
  // open the group
  //                  remove its container
  // each change
  //                  open, look
  @Test("does not end the group of a running program: its next change makes it again")
  func group() throws {
    let location = try #require(try TestEngine.etcd.location(of: directory.path))
    let here = try SharedContainer(
      at: location, group: "g", companion: directory.path + "/here")
    let queue = try here.queue("q").sender("s")
    let changes: [(String, () throws -> Void, (SharedContainer) throws -> Bool)] = [
      ("replace", { try here.value("a").replace(with: 2) }, { try $0.value("a").read() == 2 }),
      ("update", { try here.value("c").update { $0 = 3 } }, { try $0.value("c").read() == 3 }),
      (
        "values", { try here.update(["d", "e"]) { $0 = ["d": 1, "e": 2] } },
        { try $0.value("e").read() == 2 }
      ),
      (
        "enqueue", { try queue.enqueue(4) },
        { try $0.queue("q").consume().next(until: .now)?.payload == 4 }
      ),
      (
        "append", { try here.log("l").append(5) },
        { try $0.log("l").read().next(until: .now)?.payload == 5 }
      ),
      ("post", { try here.notification("n").post() }, { _ in true }),
      ("enter", { _ = try here.presence("p").enter() }, { _ in true }),
    ]
    for (name, change, isThere) in changes {
      var removal = ContainerRemoval(of: try container("there"))
      removal.allowsUse = true
      _ = try removal.run()
      try change()
      #expect(try isThere(container("there")), "\(name)")
    }
  }
}
