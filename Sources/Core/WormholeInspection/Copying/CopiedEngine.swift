package import Wormhole

/// The engine's operations that copy and remove a container.
package protocol CopiedEngine: ContainerEngine {
  /// Returns a source that reads the container at one moment; nil for a directory, which needs a
  /// snapshot.
  func copySource() -> CopySource?

  /// Removes everything of the container here except the directory on this machine.
  ///
  /// - Returns: Whether the package has made that directory, beside the container.
  func removeContent() throws -> Bool
}

extension DirectoryEngine: CopiedEngine {
  package func copySource() -> CopySource? { nil }

  /// Its files are those of the directory.
  package func removeContent() -> Bool { false }
}

/// A place to which a container can be copied, and whose members are known.
package protocol ClusterLocation: EngineLocation {
  /// Asks the members of the cluster about themselves, even if the container cannot be opened.
  func members() throws -> ClusterReport

  /// Begins a copy that no process can open before its end.
  ///
  /// - Parameter deadline: The caller's.
  func copyTarget(until deadline: ContinuousClock.Instant) throws -> any CopyTarget
}
