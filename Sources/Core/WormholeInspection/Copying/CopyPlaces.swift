/// The place that a container is copied from.
package protocol CopySource {
  /// Reads everything that outlives processes, as it was at one moment, in the order of the keys of a
  /// queue's batches.
  ///
  /// - Returns: False if it could not be read completely as it was at that moment.
  func read(_ body: (CopiedKey) throws -> Void) throws -> Bool
}

/// The place that a container is copied to: no process can open it before the end.
package protocol CopyTarget {
  /// This machine's directory for files that lie beside the container's own entries.
  var directory: String { get }

  func put(_ item: CopiedKey) throws

  /// Makes it a container, in one step.
  func finish() throws

  /// Removes everything.
  func abandon()
}
