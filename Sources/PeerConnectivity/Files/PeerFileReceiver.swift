public import Dispatch
public import FoundationEssentials
public import PropertyLists

/// The one who receives the files for a name, until it is forgotten or ended. Thread-safe.
public final class PeerFileReceiver: Sendable {
  init() {}

  /// The next file, and waits for one if there is none; nil when the deadline has passed.
  public func next(until deadline: ContinuousClock.Instant) throws -> PeerFile? {
    preconditionFailure("unbuilt")
  }

  /// The next file; see the form without `async`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> PeerFile? {
    preconditionFailure("unbuilt")
  }

  /// Calls a handler with each file from now on, one at a time; when it returns, the file is
  /// acknowledged and, unless it was claimed or moved away, deleted.
  public func handle(
    on queue: DispatchQueue, failure: @escaping @Sendable (PeerError) -> Void = { _ in },
    _ handler: @escaping @Sendable (PeerFile) throws -> Void
  ) { preconditionFailure("unbuilt") }

  /// Whether nothing waits and nothing is being handled.
  public func isIdle() throws -> Bool { preconditionFailure("unbuilt") }

  /// Ends receiving; what was not acknowledged is delivered again to the next. Once is enough.
  public func end() { preconditionFailure("unbuilt") }
}

/// A file that came: it is deleted with its acknowledgement, unless it was claimed.
public final class PeerFile: Sendable {
  init(
    id: String, sender: String, name: String, url: URL, size: Int64, metadata: PropertyListValue?,
    isRedelivery: Bool
  ) {
    self.id = id
    self.sender = sender
    self.name = name
    self.url = url
    self.size = size
    self.metadata = metadata
    self.isRedelivery = isRedelivery
  }

  /// The transfer's id.
  public let id: String
  /// Who sent it.
  public let sender: String
  /// The last component of the name that it had at its sender; never a path.
  public let name: String
  /// Where it lies until it is acknowledged.
  public let url: URL
  /// Its size in bytes.
  public let size: Int64
  /// What was sent with it.
  public let metadata: PropertyListValue?
  /// Whether it was delivered before, and perhaps handled, by a process that ended.
  public let isRedelivery: Bool

  /// Makes the file the receiver's own: a rename, or a copy onto another file system.
  ///
  /// - Parameter destination: where to; what lies there is replaced in one step.
  public func claim(to destination: URL) throws { preconditionFailure("unbuilt") }

  /// Ends it as processed, and deletes what was not claimed.
  public func acknowledge() throws { preconditionFailure("unbuilt") }

  /// Ends it as failed, deletes it, and its sender learns why.
  public func fail(_ reason: String) throws { preconditionFailure("unbuilt") }
}
