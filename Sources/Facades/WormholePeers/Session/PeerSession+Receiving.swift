import FoundationEssentials
import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

extension PeerSession {
  /// Becomes the receiver of this name's messages; one process receives at a time. No `activate()`
  /// is needed.
  ///
  /// - Parameters:
  ///   - deadline: when to stop waiting for another receiver; a stopped one is replaced. By default
  ///     10 seconds from now.
  ///   - attempts: after this many attempts, including those of earlier receivers that crashed, a
  ///     message that has not ended fails: its sender learns of it, and it is kept; see
  ///     `failures(for:)`. By default any number.
  /// - Throws: `WormholeError.Code.replaced`, its `holder` the process that receives instead; or an
  ///   error of the container.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func receiveMessages(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) throws -> PeerReceiver<PeerMessage> {
    try receiver(messages, until: deadline, attempts)
  }

  /// Becomes the receiver of this name's messages; see the form without `async`. Cancelling the
  /// task ends the wait as `cancelled`.
  public func receiveMessages(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) async throws -> PeerReceiver<PeerMessage> {
    try await receiver(messages, until: deadline, attempts)
  }

  /// Becomes the receiver of this name's files; as `receiveMessages`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func receiveFiles(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) throws -> PeerReceiver<PeerFile> {
    try receiver(files, until: deadline, attempts)
  }

  /// Becomes the receiver of this name's files; see the form without `async`. Cancelling the task
  /// ends the wait as `cancelled`.
  public func receiveFiles(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) async throws -> PeerReceiver<PeerFile> {
    try await receiver(files, until: deadline, attempts)
  }

  /// Calls a closure that receives messages or files, and reports whether it has received any. If
  /// nothing was ever sent to this name, before or during the call, its traces are then removed.
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
    _ attempts: Int?
  ) throws -> PeerReceiver<Delivered> {
    do {
      // One process receives for a name: a replaced one ends, and does not wait for its turn.
      let terms = ConsumerTerms(attempts, joinsAgain: false)
      return PeerReceiver(try opening.queue.join(terms, until: deadline), for: name, opening)
    } catch {
      throw refused(error, opening)
    }
  }

  private func receiver<Delivered>(
    _ opening: PeerReceiver<Delivered>.Opening, until deadline: ContinuousClock.Instant?,
    _ attempts: Int?
  ) async throws -> PeerReceiver<Delivered> {
    do {
      let terms = ConsumerTerms(attempts, joinsAgain: false)
      return PeerReceiver(try await opening.queue.join(terms, until: deadline), for: name, opening)
    } catch {
      throw refused(error, opening)
    }
  }

  // A caller that waited in vain learns which process receives instead, like a replaced one.
  private func refused<Delivered>(
    _ error: any Error, _ opening: PeerReceiver<Delivered>.Opening
  ) -> WormholeError {
    let action = "receive \(opening.what) for \"\(name)\""
    guard let error = error as? WormholeError, error.code == .timedOut else {
      return WormholeError(any: error, action)
    }
    return WormholeError(
      .replaced, action, reason: error.reason, remedy: error.remedy, holder: error.holder)
  }
}
