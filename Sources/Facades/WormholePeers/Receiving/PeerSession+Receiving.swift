import Wormhole
import WormholeInspection

extension PeerSession {
  /// Becomes the receiver of the messages for this name; one process receives at a time. It needs no
  /// `activate()`.
  ///
  /// - Parameters:
  ///   - deadline: when to stop waiting for another receiver; a stopped one is replaced. By default
  ///     10 seconds from now.
  ///   - maximumDeliveries: after so many deliveries, including those to earlier receivers that
  ///     crashed, a message that has not ended fails: its sender learns it, and it is kept: see
  ///     `failures(for:)`. By default any number.
  /// - Throws: `PeerError`: `replaced`, its `holder` the process that receives instead; or an error
  ///   of the container.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func receiveMessages(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) throws -> PeerReceiver<PeerMessage> {
    try receiver(messages, until: deadline, maximumDeliveries)
  }

  /// Becomes the receiver of the messages for this name; see the form without `async`. Cancelling the
  /// task ends the wait as `cancelled`.
  public func receiveMessages(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) async throws -> PeerReceiver<PeerMessage> {
    try await receiver(messages, until: deadline, maximumDeliveries)
  }

  /// Becomes the receiver of the files for this name; as `receiveMessages`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func receiveFiles(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) throws -> PeerReceiver<PeerFile> {
    try receiver(files, until: deadline, maximumDeliveries)
  }

  /// Becomes the receiver of the files for this name; see the form without `async`. Cancelling the task
  /// ends the wait as `cancelled`.
  public func receiveFiles(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) async throws -> PeerReceiver<PeerFile> {
    try await receiver(files, until: deadline, maximumDeliveries)
  }

  /// Calls a closure that receives messages or files, and reports whether it has received any. If
  /// nothing was ever sent to this name, before or during the call, its traces are removed afterwards.
  package func leavingNoName(
    forFiles: Bool, _ body: (_ hasReceived: inout Bool) throws -> Void
  ) throws {
    let queue = queue(of: name, isFile: forFiles)
    var isUsed = try betweenPeers("receive \(forFiles ? "files" : "messages") for \"\(name)\"") {
      try queue.awaitFirstUse(until: .now, willWait: {})
    }
    defer { if !isUsed { queue.container.removeUnusedQueue(queue.name, isOwn: true) } }
    try body(&isUsed)
  }

  private var messages: PeerReceiver<PeerMessage>.Opening {
    let (name, reachabilities) = (name, reachabilities)
    let queue = queue(of: name, isFile: false)
    return .init(what: "messages", queue: queue, blocks: false) { entry in
      let message = PeerMessage(entry, for: name)
      // Its sender was active just now.
      reachabilities.heard(from: message.sender)
      return message
    }
  }

  private var files: PeerReceiver<PeerFile>.Opening {
    .init(
      what: "files", queue: queue(of: name, isFile: true), blocks: true, open: PeerFile.open)
  }

  private func receiver<Delivered>(
    _ opening: PeerReceiver<Delivered>.Opening, until deadline: ContinuousClock.Instant?,
    _ maximumDeliveries: Int?
  ) throws -> PeerReceiver<Delivered> {
    do {
      // One process receives for a name: one that was replaced ends, and does not wait for its turn.
      let terms = ConsumerTerms(maximumDeliveries, joinsAgain: false)
      return PeerReceiver(try opening.queue.join(terms, until: deadline), for: name, opening)
    } catch {
      throw refused(error, opening)
    }
  }

  private func receiver<Delivered>(
    _ opening: PeerReceiver<Delivered>.Opening, until deadline: ContinuousClock.Instant?,
    _ maximumDeliveries: Int?
  ) async throws -> PeerReceiver<Delivered> {
    do {
      let terms = ConsumerTerms(maximumDeliveries, joinsAgain: false)
      return PeerReceiver(try await opening.queue.join(terms, until: deadline), for: name, opening)
    } catch {
      throw refused(error, opening)
    }
  }

  // A caller that waited in vain learns which process receives instead, as a replaced one does.
  private func refused<Delivered>(
    _ error: any Error, _ opening: PeerReceiver<Delivered>.Opening
  ) -> PeerError {
    let action = "receive \(opening.what) for \"\(name)\""
    guard let error = error as? AppGroupError, error.code == .timedOut else {
      return PeerError(any: error, action)
    }
    return PeerError(
      .replaced, action, reason: error.reason, remedy: error.remedy, holder: error.holder,
      underlying: error)
  }
}
