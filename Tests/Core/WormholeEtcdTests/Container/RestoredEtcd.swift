import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// A member of etcd with a container, to be restored from what was saved of it.
class RestoredEtcd {
  let directory: TemporaryDirectory
  let node: EtcdNode
  let container: SharedContainer
  let etcd: EtcdContainer

  init() throws {
    directory = try TemporaryDirectory()
    node = try EtcdNode()
    container = try Self.container(on: node, directory)
    guard let etcd = container.engine as? EtcdContainer else { throw Errno.invalidArgument }
    self.etcd = etcd
  }

  /// - Parameter lifetime: Containers of different ones share nothing in a process.
  private static func container(
    on node: EtcdNode, _ directory: TemporaryDirectory, lifetime: Int = 5
  ) throws -> SharedContainer {
    var location = EtcdLocation(endpoints: [node.endpoint], prefix: "test")
    location.lifetime = .seconds(lifetime)
    return try SharedContainer(etcd: location, companion: directory.path)
  }

  func other() throws -> SharedContainer {
    try Self.container(on: node, directory, lifetime: 7)
  }

  /// Lets the history grow, so that the next one is shorter for the rest of a test.
  func grow() throws {
    for number in 0..<100 { try container.value("growth").replace(with: PropertyListValue(number)) }
  }

  /// A container through a proxy, whose process notices nothing while that is blocked.
  func far(_ proxy: LossyProxy) throws -> (SharedContainer, EtcdContainer) {
    var location = EtcdLocation(endpoints: [proxy.endpoint], prefix: "test")
    location.lifetime = .seconds(60)
    let container = try SharedContainer(etcd: location, companion: directory.path)
    guard let etcd = container.engine as? EtcdContainer else { throw Errno.invalidArgument }
    return (container, etcd)
  }
}

extension EtcdNode {
  /// Lets the next change have a revision.
  func grow(before revision: Int64) throws {
    let client = self.client()
    let key = Array("growth".utf8)
    while try client.read(.key(key), until: soon).revision < revision - 1 {
      _ = try client.commit(
        .init(if: [.version(of: key, -1, is: .greater)], then: [.put(key: key, value: [])]),
        until: soon)
    }
  }
}
