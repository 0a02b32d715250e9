import FoundationEssentials
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// Brings one file into its peer's queue. Blocks its thread.
///
/// | found, for an intention that is delivered again | means | done |
/// |---|---|---|
/// | an attachment that is whole, and an entry that names it | it was stored | nothing more |
/// | an attachment that is whole | the entry was not stored | another name, a mark, an entry |
/// | no attachment, and the intention is marked | stored, and taken already | nothing more |
/// | anything else | it was not whole | begun again, on etcd with the pieces that are there |
///
/// The intention is marked when the content is whole, before the entry is stored; and from then on
/// the content goes to the peer only. A sender that wants it back first takes it away from the
/// peer, by giving it another name, and then withdraws the mark, before anything else is done with
/// it. So the third row is unambiguous.
struct FileSending {
  /// It was given up before it was stored.
  struct GivenUp: Error {}

  /// A part of the file is in the container, and a step with that part failed: sending has to
  /// continue, because its end is not known yet.
  struct Unfinished: Error {
    let cause: any Error
  }

  private let transfer: PeerFileTransfer
  private let entry: QueueEntry
  private let sender: Queue.Sender

  /// - Throws: `PeerError`: `unsupportedValue` for an intention that names no peer.
  init(_ transfer: PeerFileTransfer, as entry: QueueEntry) throws {
    self.transfer = transfer
    self.entry = entry
    sender = try transfer.files.sender(to: transfer.peer)
  }

  private var intention: FileIntention { transfer.intention }
  private var queue: Queue { sender.queue }

  private struct Content {
    let attachment: String
    let size: Int64
    let checksum: UInt64?
    /// The file was copied instead of moved: the source is to be removed.
    var isSourceLeft = false
    /// Locked until the entry is stored.
    var stage: (any AttachmentStage)?
  }

  private enum Mark: String {
    case isWhole = "whole"
    case isSourceLeft = "copied"
  }

  /// Failures after which the transfer continues from the bytes that have arrived: etcd is out of
  /// reach, so they could not be removed either.
  private static let isContinued: Set<AppGroupError.Code> = [.unreachable, .outcomeUnknown]

  /// How long copying goes on before it notices that another process has given the transfer up.
  private static let patience: Duration = .milliseconds(500)

  private func newAttachment() -> String { intention.attachmentPrefix + Nonce.next() }

  /// - Returns: the entry that was stored; nil when it was stored before, and the peer has it.
  /// - Throws: `GivenUp`; `AppGroupError` and `PeerError` for why it cannot be sent: then nothing
  ///   is left, or the error says where, unless the failure may pass; `Unfinished` otherwise.
  func run() throws -> QueueEntryID? {
    let content: Content
    switch entry.isRedelivery ? try unfinished(left) : .nothing([]) {
    case .nothing(let old): content = try make(replacing: old)
    case .whole(let adopted): content = adopted
    case .stored(let id, let isSourceLeft): return try stored(id, isSourceLeft)
    }
    let id: QueueEntryID
    do {
      id = try store(content)
    } catch {
      try takeBack(content.attachment, isGivenUp: error is GivenUp)
      throw error
    }
    return try stored(id, content.isSourceLeft)
  }

  private func stored(_ id: QueueEntryID?, _ isSourceLeft: Bool) throws -> QueueEntryID? {
    if isSourceLeft { try unfinished(removeSource) }
    // It is stored, and delivered when the peer receives, however the peer is started; the next
    // caller with a request learns why the peer could not be started now.
    _ = transfer.files.outbox.wake(intention.peer, for: queue)
    return id
  }

  /// Removes the very file that was copied.
  private func removeSource() throws {
    do {
      try intention.withSource { state in
        guard state == .locked else { return }
        // A sender that was replaced leaves the source to its successor: the transfer may have been
        // taken back, which no process can do from here on.
        try entry.batch.confirm()
        try removeFile(intention.source)
      }
    } catch let error as Errno {
      // It is tried again.
      guard error != .tooManyOpenFiles else { throw error }
      // The copy is stored, so a source that cannot be removed stays, and the transfer succeeds.
    }
  }

  private func unfinished<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw Unfinished(cause: error) }
  }

  // MARK: Remains of an earlier attempt

  private enum Left {
    /// And attachments that are not whole.
    case nothing([Queue.WaitingAttachment])
    case whole(Content)
    /// As this entry, unless the peer has handled it already.
    case stored(QueueEntryID?, isSourceLeft: Bool)
  }

  private func left() throws -> Left {
    let old = try queue.waitingAttachments(prefix: intention.attachmentPrefix)
    let mark = try entry.marked()
    guard let whole = old.first(where: \.isWhole) else {
      guard let mark, old.isEmpty else {
        if mark != nil { try entry.unmark() }
        return .nothing(old)
      }
      let id = try storedEntry(naming: intention.attachmentPrefix)
      return .stored(id, isSourceLeft: Mark(rawValue: mark) == .isSourceLeft)
    }
    let isSourceLeft = intention.options.isMoved && intention.isSourceThere
    if let id = try storedEntry(naming: whole.id) {
      return .stored(id, isSourceLeft: isSourceLeft)
    }
    let attachment = newAttachment()
    guard let size = try queue.renameAttachment(whole.id, to: attachment) else {
      // The peer took it just now, or another process continues with it instead.
      throw lostSight(of: whole.id)
    }
    try entry.unmark()
    for other in old where other.id != whole.id { try queue.removeAttachment(other.id) }
    return .whole(
      Content(attachment: attachment, size: size, checksum: nil, isSourceLeft: isSourceLeft))
  }

  private func storedEntry(naming prefix: String) throws -> QueueEntryID? {
    try queue.entry(of: sender.name, attachmentPrefix: prefix)
  }

  private func lostSight(of attachment: String) -> PeerError {
    PeerError(
      .replaced, "send \(intention.source) to \"\(intention.peer)\"", peer: intention.peer,
      reason: "its content (\(attachment)) is not where it was put")
  }

  // MARK: Content

  private func make(replacing old: [Queue.WaitingAttachment]) throws -> Content {
    let source = try SourceFile(
      intention.source, isMoved: intention.options.isMoved, to: intention.peer)
    let stage = try sender.stage(
      newAttachment(), bytes: source.status.size, continuing: old.map(\.id), for: entry)
    do {
      for other in old { try queue.removeAttachment(other.id) }
      if intention.options.isMoved, let content = try move(source, stage) { return content }
      return try copy(source, stage)
    } catch let error as AppGroupError where Self.isContinued.contains(error.code) {
      throw error
    } catch {
      try giveBack(stage.id, isGivenUp: error is GivenUp)
      throw error
    }
  }

  private func move(_ source: borrowing SourceFile, _ stage: any AttachmentStage) throws -> Content?
  {
    // A container's files belong to its user: another user's file is copied.
    guard source.status.owner == Program.effectiveUser,
      try stage.move(from: source.path, durability: intention.options.durability)
    else { return nil }
    return Content(
      attachment: stage.id, size: source.status.size, checksum: nil, stage: stage)
  }

  private func copy(_ source: borrowing SourceFile, _ stage: any AttachmentStage) throws -> Content
  {
    // A copy that will be the only one must survive a loss of power.
    let durability = intention.options.isMoved ? .durable : intention.options.durability
    // A look may take a round trip, and there is one in any case before the file is stored.
    var nextLook = ContinuousClock.now + Self.patience
    let checksum = try stage.copy(
      source.descriptor, source.status, durability: durability,
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
    return Content(
      attachment: stage.id, size: source.status.size, checksum: checksum,
      isSourceLeft: intention.options.isMoved, stage: stage)
  }

  // MARK: Storing

  private func store(_ content: Content) throws -> QueueEntryID {
    let durability = intention.options.durability
    let mark = content.isSourceLeft ? Mark.isSourceLeft : .isWhole
    try entry.mark(mark.rawValue, durability: durability)
    try checkGivenUp()
    let notice = FileNotice(
      intention, attachment: content.attachment, size: content.size, checksum: content.checksum)
    let passed = Duration.seconds(max(0, -entry.sent.timeIntervalSinceNow))
    return try sender.enqueue(
      notice.value, durability: durability,
      expires: intention.options.expiry.map { max(.zero, $0 - passed) }, keepsReceipt: true,
      receiptTerm: intention.options.receiptTerm)
  }

  // MARK: Giving it back

  /// After an error that may have come while the entry was stored: the peer or we have the content.
  private func takeBack(_ attachment: String, isGivenUp: Bool) throws {
    let own = newAttachment()
    try unfinished {
      guard try queue.renameAttachment(attachment, to: own) != nil else {
        throw lostSight(of: attachment)
      }
      // An entry that names a missing attachment only fails.
      try entry.unmark()
    }
    try giveBack(own, isGivenUp: isGivenUp)
  }

  /// Removes an attachment that the peer cannot have. A file that was handed over goes back first;
  /// if that fails after an error, it stays in the container, and the error names its place.
  private func giveBack(_ attachment: String, isGivenUp: Bool) throws {
    let isBack = try unfinished {
      if intention.options.isMoved, !intention.isSourceThere,
        try queue.waitingAttachments(prefix: attachment).contains(where: \.isWhole)
      {
        return try queue.returnAttachment(attachment, to: intention.source)
      }
      return true
    }
    guard isBack || isGivenUp else {
      throw SourceFile.refused(
        intention.source, to: intention.peer, "it could not be stored, nor go back to where it was",
        remedy: "it is \(queue.location(ofAttachment: attachment))")
    }
    try unfinished { try queue.removeAttachment(attachment) }
  }

  private func checkGivenUp() throws {
    guard !transfer.state.withLock(\.isGivenUp),
      try transfer.files.notes.read()?["cancelled"]?[intention.id] == nil
    else { throw GivenUp() }
  }
}
