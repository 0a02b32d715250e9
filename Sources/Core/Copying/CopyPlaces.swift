/// The place that a container is copied from.
protocol CopySource {
  /// Whether it is read as it was at one moment, whatever happens to it meanwhile.
  var isSnapshot: Bool { get }

  /// Reads everything that outlives processes, in the order of the keys of a queue's batches.
  func read(_ body: (CopiedKey) throws -> Void) throws
}

/// The place that a container is copied to: nobody can open it before the end.
protocol CopyTarget {
  /// This machine's directory for files that lie beside the container's own entries.
  var directory: String { get }

  func put(_ item: CopiedKey) throws

  /// Makes it a container, in one step.
  func finish() throws

  /// Removes everything.
  func abandon()
}
