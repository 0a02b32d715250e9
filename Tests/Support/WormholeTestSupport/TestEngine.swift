package import Wormhole
package import WormholeEtcd

/// What stands behind the containers of a test.
package enum TestEngine: String, Sendable, CaseIterable {
  case directory
  case etcd

  /// That of the running test: see the trait `bothEngines`.
  @TaskLocal package static var current = TestEngine.directory

  /// The engines that are there: without etcd's program only the directory.
  package static let available: [TestEngine] =
    EtcdNode.isMissing ? [.directory] : TestEngine.allCases

  /// Returns the place of the container of a test's directory: the directory, or a prefix of its own
  /// on the etcd of all tests.
  package func location(
    of directory: String, lifetime: Duration = .seconds(5)
  ) throws -> EtcdLocation? {
    guard self == .etcd else { return nil }
    var location = EtcdLocation(
      endpoints: [try EtcdNode.shared.get().endpoint], prefix: "test" + directory)
    location.lifetime = lifetime
    return location
  }

  /// Returns how often to do something that is done so often in a directory: on etcd, where each step
  /// takes about ten times as long, a part of that.
  package func times(_ count: Int) -> Int { self == .directory ? count : (count + 4) / 5 }

  /// Returns a directory as a container; on etcd it is this machine's directory of the container.
  ///
  /// - Parameter lifetime: How long a process that says nothing is taken for alive on etcd.
  package func container(
    at directory: String, lifetime: Duration = .seconds(5)
  ) throws -> SharedContainer {
    guard let location = try location(of: directory, lifetime: lifetime) else {
      return try SharedContainer(path: directory)
    }
    return try SharedContainer(etcd: location, companion: directory)
  }
}

extension TemporaryDirectory {
  /// The directory as a container; on etcd it is this machine's directory of the container.
  ///
  /// - Parameter lifetime: How long a process that says nothing is taken for alive on etcd.
  package func container(lifetime: Duration = .seconds(5)) throws -> SharedContainer {
    try TestEngine.current.container(at: path, lifetime: lifetime)
  }

  /// How another process finds the container: `WORMHOLE_CONTAINER`.
  package var location: String {
    get throws { try TestEngine.current.location(of: path)?.description ?? path }
  }

  /// The variables with which other processes find the containers of groups: in the directory, or on
  /// etcd.
  package var groups: [String] {
    get throws {
      let location = try TestEngine.current.location(of: path)
      return ["XDG_DATA_HOME=\(path)"]
        + (location.map { ["XDG_STATE_HOME=\(path)/state", "WORMHOLE_GROUPS=\($0)"] } ?? [])
    }
  }
}

extension SharedContainer {
  /// The keys of files in an own queue of the package; nil in a directory.
  package func keys(ofFilesIn queue: String) throws -> [String]? {
    guard let etcd = engine as? EtcdContainer else { return nil }
    return try ["/a/", "/t/", "/u/"].flatMap { part in
      try etcd.client.read(
        .prefix(etcd.key(.ownQueue, queue, part: part)), keysOnly: true, until: soon
      ).items.map { etcd.location(of: $0.key) }
    }
  }
}

extension SharedContainer {
  /// - Parameter companion: The directory of this machine.
  package convenience init(etcd location: EtcdLocation, companion: String) throws {
    try self.init(at: location, companion: companion)
  }

  /// A container that is known to be on etcd.
  package convenience init(_ container: EtcdContainer, companion: String) throws {
    try self.init(container, at: container.location, companion: companion)
  }
}
