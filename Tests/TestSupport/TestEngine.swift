package import AppGroup

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
}

extension TemporaryDirectory {
  /// The directory as a container; on etcd it is this machine's directory of the container.
  ///
  /// - Parameter lifetime: How long a process that says nothing is taken for alive on etcd.
  package func container(lifetime: Duration = .seconds(5)) throws -> SharedContainer {
    guard let location = try TestEngine.current.location(of: path, lifetime: lifetime) else {
      return try SharedContainer(path: path)
    }
    return try SharedContainer(etcd: location, companion: path)
  }

  /// How another process finds the container: `WORMHOLE_CONTAINER`.
  package var location: String {
    get throws { try TestEngine.current.location(of: path)?.description ?? path }
  }
}
