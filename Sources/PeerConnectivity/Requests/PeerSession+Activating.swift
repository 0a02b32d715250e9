extension PeerSession {
  /// Becomes the one who is reached under this name, until `invalidate`, until the session is
  /// forgotten, or until the process ends.
  ///
  /// - Parameter deadline: until when to wait for another process that is active under the name;
  ///   one that is stopped is replaced. By default 10 seconds from now.
  /// - Throws: `PeerError`: `replaced`, its `holder` who is active instead; or what the container
  ///   refuses.
  public func activate(until deadline: ContinuousClock.Instant? = nil) throws {
    preconditionFailure("unbuilt")
  }

  /// Becomes the one who is reached under this name; see the form without `async`.
  public func activate(until deadline: ContinuousClock.Instant? = nil) async throws {
    preconditionFailure("unbuilt")
  }

  /// Whether this session is the one who is reached under its name.
  public var isActive: Bool { preconditionFailure("unbuilt") }

  /// Ends being reached: requests under way here end as `cancelled`, those of others to this one as
  /// `unreachable`. Once is enough; the session may be activated again.
  public func invalidate() { preconditionFailure("unbuilt") }
}
