import AppGroup

extension PeerSession {
  /// Becomes the session that is reached under this name, until `close`, until it is released, or until
  /// the process ends. Does nothing if it is active. Resumes sending the files that an earlier process of
  /// this name has begun to send.
  ///
  /// - Parameter deadline: until when to wait for another process that is active under the name;
  ///   one that is stopped is replaced. By default 10 seconds from now.
  /// - Throws: `PeerError`: `replaced`, its `holder` the process that is active instead; or an error of
  ///   the container.
  /// - Complexity: makes a mailbox, and enters a presence exclusively.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func activate(until deadline: ContinuousClock.Instant? = nil) throws {
    guard let address = try core.prepareActivation() else { return }
    let (presence, content) = (core.presence, PresenceMember.content(mailbox: address))
    try core.activated(
      Result { try presence.enterExclusively(content: content, until: deadline) }, address)
    outgoingFiles.resume()
  }

  /// Becomes the session that is reached under this name; see the form without `async`. Cancelling the
  /// task ends the wait.
  public func activate(until deadline: ContinuousClock.Instant? = nil) async throws {
    let core = core
    guard let address = try await Blocking.run({ try core.prepareActivation() }) else { return }
    let content = PresenceMember.content(mailbox: address)
    let result: Result<PresenceRegistration, any Error>
    do {
      result = .success(
        try await core.presence.enterExclusively(content: content, until: deadline))
    } catch {
      result = .failure(error)
    }
    try await Blocking.run { [result, outgoingFiles] in
      try core.activated(result, address)
      outgoingFiles.resume()
    }
  }

  /// Whether this session is the one that is reached under its name.
  ///
  /// A process that was stopped and replaced learns it soon after it continues; to be sure at one moment,
  /// call `confirmActive`.
  public var isActive: Bool { core.isActive }

  /// Looks whether this session is still the one that is reached under its name.
  ///
  /// - Throws: `PeerError`: `replaced`, its `holder` the process that is reached instead; or `notActive`.
  public func confirmActive() throws { try core.confirmActive() }

  /// Ends being reached: requests of this session end as `cancelled`, requests to it as `unreachable`.
  /// Further calls have no effect; the session may be activated again.
  public func close() { core.close() }
}
