import FoundationEssentials
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// Brings one file into its peer's queue. Blocks its thread.
///
/// A transfer that was interrupted begins again when its intention is delivered again:
///
/// | found then | means | done |
/// |---|---|---|
/// | an attachment that is whole, and an entry that names it | it was stored | nothing more |
/// | no attachment that is whole, and the intention is marked | stored, and taken already | nothing more |
/// | anything else | it was not stored | what is left is removed, and it begins again |
///
/// The intention is marked when the content is whole, before the entry is stored. A sender that
/// does not store the entry first renames the content, so that the peer loses it, and then
/// withdraws the mark, before it does anything else. So the second row is unambiguous.
struct FileSending {
  /// It was given up before it was stored.
  struct GivenUp: Error {}

  /// A part of the file is in the container, and a step with it failed: sending has to continue,
  /// because its end is not known yet.
  struct Unfinished: Error {
    let cause: any Error
  }

  private let transfer: PeerFileTransfer
  private let entry: PlainEntry
  private let sender: PlainSender

  /// - Throws: `WormholeError`: `unsupportedValue` for an intention that names no peer.
  init(_ transfer: PeerFileTransfer, as entry: PlainEntry) throws {
    self.transfer = transfer
    self.entry = entry
    sender = try transfer.files.sender(to: transfer.peer)
  }

  private var intention: FileIntention { transfer.intention }
  private var queue: PlainQueue { sender.queue }

  /// Failures after which the next attempt removes what is left: etcd cannot be reached now.
  private static let isRemovedLater: Set<WormholeError.Code> = [
    .clusterUnreachable, .outcomeUnknown,
  ]

  /// How long copying goes on before it notices that another process has given the transfer up.
  private static let patience: Duration = .milliseconds(500)

  private func newAttachment() -> String { intention.attachmentPrefix + Nonce.next() }

  /// - Returns: the entry that was stored; nil if it was stored before, and the peer has it.
  /// - Throws: `GivenUp`; `WormholeError` for why it cannot be sent: then nothing is left, unless
  ///   the failure may pass; `Unfinished` otherwise.
  func run() throws -> QueueEntryID? {
    if entry.isRedelivery, case .stored(let id) = try unfinished(earlierAttempt) {
      return stored(id)
    }
    let source = try SourceFile(intention.source, to: intention.peer)
    let attachment = newAttachment()
    let stage = try sender.stage(attachment, bytes: source.status.size, for: entry.batch)
    do {
      try copy(source, to: stage)
    } catch let error as WormholeError where Self.isRemovedLater.contains(error.code) {
      throw error
    } catch {
      try unfinished { try queue.removeAttachment(attachment) }
      throw error
    }
    do {
      // The attachment belongs to this process until the entry is stored.
      return stored(try withExtendedLifetime(stage) { try store(attachment, source.status.size) })
    } catch {
      // The entry may be stored: the content is with the peer or with this process.
      try unfinished { try takeBack(attachment) }
      throw error
    }
  }

  private func stored(_ id: QueueEntryID?) -> QueueEntryID? {
    // It is stored, and delivered when the peer receives, however the peer is started; the next
    // caller with a request learns why the peer could not be started now.
    _ = transfer.files.outbox.wake(intention.peer, for: queue)
    return id
  }

  private func unfinished<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw Unfinished(cause: error) }
  }

  // MARK: Earlier attempts

  private enum EarlierAttempt {
    /// As this entry, unless the peer has already handled it.
    case stored(QueueEntryID?)
    /// Nothing of it is left.
    case failed
  }

  private func earlierAttempt() throws -> EarlierAttempt {
    let left = try queue.waitingAttachments(prefix: intention.attachmentPrefix)
    if let whole = left.first(where: \.isWhole) {
      if let id = try storedEntry(naming: whole.id) { return .stored(id) }
      try takeBack(whole.id)
    } else if try entry.marked() != nil {
      return .stored(try storedEntry(naming: intention.attachmentPrefix))
    }
    for other in left { try queue.removeAttachment(other.id) }
    return .failed
  }

  private func storedEntry(naming prefix: String) throws -> QueueEntryID? {
    try queue.entry(of: sender.name, attachmentPrefix: prefix)
  }

  /// Removes an attachment that is whole, unless the peer has it.
  private func takeBack(_ attachment: String) throws {
    let own = newAttachment()
    guard try queue.renameAttachment(attachment, to: own) else {
      // The peer took it just now, or another process continues with the transfer.
      throw WormholeError(
        .replaced, "send \(intention.source) to \"\(intention.peer)\"", peer: intention.peer,
        reason: "its content (\(attachment)) is not where it was put")
    }
    // An entry that names a missing attachment only fails.
    try entry.unmark()
    try queue.removeAttachment(own)
  }

  // MARK: Content

  private func copy(_ source: borrowing SourceFile, to stage: any AttachmentStage) throws {
    // A look may take a round trip, and one is made anyway before the file is stored.
    var nextLook = ContinuousClock.now + Self.patience
    try stage.copy(
      source.descriptor, source.status, durability: intention.options.durability,
      check: {
        guard !transfer.state.withLock(\.isGivenUp) else { throw GivenUp() }
        guard .now >= nextLook else { return }
        try checkGivenUp()
        nextLook = .now + Self.patience
      },
      copied: transfer.advance)
    let after = try source.descriptor.status()
    guard after.size == source.status.size,
      after.modifiedSeconds == source.status.modifiedSeconds,
      after.modifiedNanoseconds == source.status.modifiedNanoseconds
    else {
      throw SourceFile.refused(
        intention.source, to: intention.peer, "it was changed while it was copied",
        remedy: "send it when no program writes to it")
    }
  }

  // MARK: Storing

  private func store(_ attachment: String, _ size: Int64) throws -> QueueEntryID {
    let durability = intention.options.durability
    try entry.mark("whole", durability: durability)
    try checkGivenUp()
    let notice = FileNotice(intention, attachment: attachment, size: size)
    let passed = Duration.seconds(max(0, -entry.sent.timeIntervalSinceNow))
    return try sender.enqueue(
      notice.value, durability: durability,
      expires: intention.options.expiry.map { max(.zero, $0 - passed) }, keepsReceipt: true,
      receiptTerm: intention.options.receiptTerm)
  }

  private func checkGivenUp() throws {
    guard !transfer.state.withLock(\.isGivenUp),
      try transfer.files.notes.read()?["cancelled"]?[intention.id] == nil
    else { throw GivenUp() }
  }
}
