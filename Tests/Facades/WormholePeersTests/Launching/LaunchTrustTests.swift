import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholePeers

@Suite("A registration of a program", .blocking)
struct LaunchTrustTests {
  let scene: LaunchScene

  init() throws { scene = try LaunchScene() }

  private func shell(_ command: String) throws {
    let child = try ChildProcess("sh", ["-c", "cd '\(scene.directory.path)' && " + command])
    #expect(try child.wait(until: soon) == .exited(0), "\(command)")
  }

  private func expectRefusal(_ words: String) throws {
    let error = try #require(throws: WormholeError.self) { try scene.launch() }
    #expect(error.code == .notLaunched && error.reason.contains(words), "\(error)")
    #expect(throws: WormholeError.self) {
      try Launcher.launch("p", for: .request, in: scene.container, until: nil)
    }
    #expect(try !Launcher.isLaunchable("p", for: .request, in: scene.container))
    #expect(try scene.started() == 0)
  }

  @Test(
    "is not followed if other users may write it, or any parent directory",
    arguments: [
      ("own/values/*launch%2Fp/value.plist", "664"), ("own/values/*launch%2Fp/value.plist", "602"),
      ("own/values/*launch%2Fp", "770"), ("own/values", "777"), ("own", "777"),
    ])
  func writable(path: String, mode: String) throws {
    try scene.register("active")
    try shell("chmod \(mode) \(path)")
    try expectRefusal("and has mode \(mode)")
    try shell("chmod go-w \(path)")
    #expect(try scene.launch())
  }

  @Test(
    "is not followed if another user owns it, or a parent directory",
    .enabled(if: Program.effectiveUser == 0, "only root gives files away"),
    arguments: [
      "own/values/*launch%2Fp/value.plist", "own/values/*launch%2Fp", "own/values", "own",
    ])
  func anothers(path: String) throws {
    try scene.register("active")
    try shell("chown 65534 \(path)")
    try expectRefusal("belongs to user 65534 and has mode")
  }

  @Test("is refused in a container that a group shares")
  func shared() throws {
    try shell("chmod 2770 .")
    defer { scene.makePrivate() }
    let container = try SharedContainer(url: scene.container.url, access: .group)
    let error = try #require(throws: WormholeError.self) {
      try PeerLaunch.Registry(in: container).set(PeerLaunch(program: "/bin/sh"), for: "p")
    }
    #expect(error.code == .notLaunched && error.reason.contains("2770"), "\(error)")
    // It used to be written and removed again, which left its name.
    #expect(try container.own.valueIdentifiers().isEmpty)
    #expect(try PeerLaunch.Registry(in: container).launch(of: "p") == nil)
  }

  @Test(
    "belongs to its machine on etcd, and one that lies in etcd starts nothing",
    .enabled(if: TestEngine.available.contains(.etcd), "there is no etcd here"))
  func onEtcd() throws {
    let container = try TestEngine.etcd.container(at: scene.directory.path + "/etcd")
    let launch = PeerLaunch(
      program: "/bin/touch", arguments: [scene.directory.path + "/started"],
      occasions: [.request, .queuedWork, .urgentWork])
    let registry = PeerLaunch.Registry(in: container)
    try registry.set(launch, for: "p")
    #expect(try registry.launch(of: "p") == launch && registry.peers() == ["p"])
    #expect(try container.own.value(PeerNames.launch("p")).read() == nil)
    try registry.remove("p")

    // As somebody else in the role writes it.
    try container.own.value(PeerNames.launch("p")).replace(with: launch.propertyList)
    #expect(try registry.launch(of: "p") == nil && registry.peers().isEmpty)
    #expect(try !Launcher.isLaunchable("p", for: .request, in: container))
    #expect(try !Launcher.launch("p", for: .request, in: container, until: .now + .seconds(20)))
    let session = try PeerSession("q", in: container)
    try session.enqueue(1, to: "p", options: .init(isUrgent: true))
    let answer = try #require(throws: WormholeError.self) { try session.request(1, to: "p") }
    #expect(answer.code == .unreachable, "\(answer)")
    #expect(throws: Errno.self) { try fileStatus(launch.arguments[0]) }
  }

  @Test("that is damaged, hostile or missing is an error, and starts nothing")
  func damaged() throws {
    let value = scene.container.own.value(PeerNames.launch("p"))
    let contents: [PropertyListValue] = [
      "text", [:], ["program": "relative"], ["program": "/bin/sh", "arguments": [1]],
      ["program": "/bin/sh", "environment": ["a": 1]],
      ["program": "/bin/sh", "budgetPerDay": "many"],
    ]
    for content in contents {
      try value.replace(with: content)
      let error = try #require(throws: WormholeError.self) { try scene.launch() }
      #expect(error.code == .damaged, "\(error)")
      #expect(try !Launcher.isLaunchable("p", for: .request, in: scene.container))
      #expect(throws: WormholeError.self) {
        try PeerLaunch.Registry(in: scene.container).launch(of: "p")
      }
    }
    try FileDescriptor.open(value.path, [.writeOnly, .truncate]).close()
    let error = try #require(throws: WormholeError.self) { try scene.launch() }
    #expect(error.code == .damaged, "\(error)")
    // A link could lead to a file that passes.
    try shell("cd own/values/*launch%2Fp && mv value.plist other && ln -s other value.plist")
    #expect(throws: WormholeError.self) { try scene.launch() }
  }
}
