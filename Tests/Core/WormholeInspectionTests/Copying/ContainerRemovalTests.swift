import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd
@testable import WormholeInspection

@Suite("The removal of a container", .blocking)
struct ContainerRemovalTests {
  private let scene: CopyScene

  init() throws { scene = try CopyScene() }

  private func isContainer(_ container: SharedContainer) throws -> Bool {
    if let etcd = container.engine as? EtcdContainer {
      return try etcd.client.count(etcd.keys, until: .now + .seconds(10)) > 0
    }
    return try SharedContainer.existing(location: container.location) != nil
  }

  private func names(in container: SharedContainer) throws -> [String] {
    try FileDescriptor.open(container.root.path, [.readOnly, .directory]).entries()
      .map(\.name.text).sorted()
  }

  @Test(
    "leaves nothing but the files of programs, or nothing at all", arguments: TestEngine.available)
  func everything(engine: TestEngine) throws {
    let container = try scene.container(engine, "c")
    try scene.fill(container)
    try makeDirectory(container.root.path + "/folder")
    let others = try names(in: container).filter { !ContainerFormat.ownEntries.contains($0) }
    #expect(others.contains("folder"))

    #expect(try ContainerRemoval(of: container).run() == others)
    #expect(try !isContainer(container))
    #expect(try names(in: container) == others)
  }

  @Test("takes the files of programs, too, if it is asked to", arguments: TestEngine.available)
  func files(engine: TestEngine) throws {
    let container = try scene.container(engine, "c")
    try scene.fill(container)
    try makeDirectory(container.root.path + "/folder")
    var removal = ContainerRemoval(of: container)
    removal.removesFiles = true
    #expect(try removal.run() == [])
    #expect(try !isContainer(container))
    // The directory itself is the user's, unless it is one that the package has made.
    let isThere = try ifPresent(fileStatus(container.root.path)) != nil
    #expect(isThere == (engine == .directory))
  }

  @Test(
    "is refused while a process is present, or consumes, and changes nothing then",
    arguments: TestEngine.available)
  func use(engine: TestEngine) throws {
    let container = try scene.container(engine, "c")
    try container.value("x").replace(with: 1)
    let registration = try container.presence("till").enter()
    let error = #expect(throws: WormholeError.self) { try ContainerRemoval(of: container).run() }
    #expect(error?.reason.contains("\"till\"") == true)
    registration.close()
    let consumer = try container.queue("q").consume()
    #expect(throws: WormholeError.self) { try ContainerRemoval(of: container).run() }
    #expect(try container.value("x").read() == 1)
    consumer.close()
    _ = try ContainerRemoval(of: container).run()
    #expect(try !isContainer(container))
  }
}
