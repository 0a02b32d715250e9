import AppGroup
import FoundationEssentials
import PropertyLists
import SystemCalls

/// Brings one file into its peer's queue. Blocks its thread.
///
/// | found, for an intention that is delivered again | means | done |
/// |---|---|---|
/// | an entry that names an attachment of it | it was stored | nothing more |
/// | an attachment that is whole | the entry may be on its way | another name, then an entry |
/// | no attachment, and the note says that it was whole | stored, and taken already | nothing more |
/// | anything else | it was not whole | begun anew |
///
/// A new attachment is there before an old one is removed: so as long as nothing is stored, an attachment
/// of the transfer is there once it was begun, and the third row cannot be mistaken.
struct FileSending {
  /// It was given up before it was stored.
  struct GivenUp: Error {}

  private let intention: FileIntention
  private let files: OutgoingFiles
  private let process: FileProcess
  /// The intention's.
  private let entry: QueueEntry

  init(
    _ intention: FileIntention, _ entry: QueueEntry, _ files: OutgoingFiles,
    _ process: FileProcess
  ) {
    self.intention = intention
    self.entry = entry
    self.files = files
    self.process = process
  }

  private struct Content {
    let attachment: String
    let size: Int64
    let checksum: UInt64?
    /// It was copied although it is to be moved: the source is to be removed.
    var isSourceLeft = false
    /// Locked until the entry is stored.
    var stage: AttachmentStage?
  }

  private func newAttachment() -> String { intention.attachmentPrefix + Nonce.next() }

  /// - Returns: the entry that was stored; nil when that was done before, and the peer has it.
  /// - Throws: `GivenUp`; `AppGroupError` and `PeerError` for why it cannot be sent. Nothing is left then.
  func run() throws -> QueueEntryID? {
    let sender = try files.sender(to: intention.peer)
    let content: Content
    if entry.isRedelivery {
      switch try left(sender) {
      case .nothing(let old): content = try make(sender, replacing: old)
      case .whole(let adopted): content = adopted
      case .stored(let id):
        removeSourceIfMoved()
        startPeer()
        return id
      }
    } else {
      content = try make(sender, replacing: [])
    }
    do {
      let id = try store(content, sender)
      if content.isSourceLeft { removeSourceIfMoved() }
      startPeer()
      return id
    } catch {
      try undo(content, sender, isGivenUp: error is GivenUp)
      throw error
    }
  }

  // MARK: What was left

  private enum Left {
    /// And attachments that are not whole.
    case nothing([Queue.WaitingAttachment])
    case whole(Content)
    /// As this entry, unless the peer has handled it already.
    case stored(QueueEntryID?)
  }

  private func left(_ sender: Queue.Sender) throws -> Left {
    let old = try sender.queue.waitingAttachments(prefix: intention.attachmentPrefix)
    guard let whole = old.first(where: \.isWhole) else {
      let note = old.isEmpty ? try files.notes.read()?["whole"]?.stringValue : nil
      guard note == intention.id else { return .nothing(old) }
      return .stored(try storedEntry(sender))
    }
    if let stored = try storedEntry(sender) { return .stored(stored) }
    let attachment = newAttachment()
    guard let size = try sender.queue.renameAttachment(whole.id, to: attachment) else {
      return .stored(try storedEntry(sender))
    }
    for other in old where other.id != whole.id { try sender.queue.removeAttachment(other.id) }
    return .whole(
      Content(
        attachment: attachment, size: size, checksum: nil,
        isSourceLeft: intention.options.isMoved && isSourceThere))
  }

  private func storedEntry(_ sender: Queue.Sender) throws -> QueueEntryID? {
    try sender.queue.entry(of: files.name, attachmentPrefix: intention.attachmentPrefix)
  }

  // MARK: Content

  private func make(
    _ sender: Queue.Sender, replacing old: [Queue.WaitingAttachment]
  ) throws -> Content {
    let source = try SourceFile(
      intention.source, isMoved: intention.options.isMoved, to: intention.peer)
    let stage = try sender.stage(newAttachment(), for: entry)
    do {
      for other in old { try sender.queue.removeAttachment(other.id) }
      if intention.options.isMoved, let content = try move(source, stage) { return content }
      return try copy(source, stage)
    } catch {
      try stage.discard()
      throw error
    }
  }

  private func move(_ source: borrowing SourceFile, _ stage: AttachmentStage) throws -> Content? {
    // A container's files are its user's: another one's is copied.
    guard source.status.owner == Program.effectiveUser,
      try stage.move(from: source.path, durability: intention.options.durability)
    else { return nil }
    return Content(
      attachment: stage.id, size: source.status.size, checksum: nil, stage: stage)
  }

  private func copy(_ source: borrowing SourceFile, _ stage: AttachmentStage) throws -> Content {
    // What is going to be the only copy survives the loss of power.
    let durability = intention.options.isMoved ? .durable : intention.options.durability
    let checksum = try stage.copy(
      source.descriptor, source.status, durability: durability, check: checkGivenUp,
      copied: process.advance)
    let after = try source.descriptor.status()
    guard after.size == source.status.size,
      after.modifiedSeconds == source.status.modifiedSeconds,
      after.modifiedNanoseconds == source.status.modifiedNanoseconds
    else {
      throw SourceFile.refused(
        intention.source, intention.peer, "it was changed while it was copied",
        remedy: "send it when nobody writes to it")
    }
    return Content(
      attachment: stage.id, size: source.status.size, checksum: checksum,
      isSourceLeft: intention.options.isMoved, stage: stage)
  }

  // MARK: Storing

  private func store(
    _ content: Content, _ sender: Queue.Sender
  ) throws -> QueueEntryID {
    let durability = intention.options.durability
    try files.notes.update(durability: durability) { notes in
      var changed = notes ?? [:]
      changed["whole"] = .string(intention.id)
      notes = changed
    }
    try checkGivenUp()
    let notice = FileNotice(
      intention, attachment: content.attachment, size: content.size, checksum: content.checksum)
    let passed = Duration.seconds(max(0, -entry.sent.timeIntervalSinceNow))
    return try sender.send(
      notice.value, durability: durability,
      expires: intention.options.expiry.map { max(.zero, $0 - passed) }, keepsReceipt: true)
  }

  // What was handed over goes back. Where it cannot after an error, it stays in the container, and the
  // error says so.
  private func undo(_ content: Content, _ sender: Queue.Sender, isGivenUp: Bool) throws {
    if intention.options.isMoved, !content.isSourceLeft {
      let isBack = try sender.queue.returnAttachment(content.attachment, to: intention.source)
      guard isBack || isGivenUp else {
        throw SourceFile.refused(
          intention.source, intention.peer,
          "it could not be stored, nor go back to where it was",
          remedy: "it is \(sender.queue.path)/attachments/\(content.attachment)/content")
      }
    }
    try sender.queue.removeAttachment(content.attachment)
  }

  private func startPeer() {
    do {
      _ = try Launcher.begin(intention.peer, for: .queuedWork, in: files.container)
    } catch {
      // The file is stored, and delivered when the peer receives, however it is started; why it could not
      // be started now is told to whoever asks it something.
      return
    }
  }

  // Only the very file that was copied. The copy is stored: what cannot be removed is no failure of the
  // transfer, and stays.
  private func removeSourceIfMoved() {
    guard intention.options.isMoved, isSourceThere else { return }
    do throws(Errno) {
      try removeFile(intention.source)
    } catch {
      // As said above.
      return
    }
  }

  private var isSourceThere: Bool {
    do throws(Errno) {
      let status = try fileStatus(intention.source)
      return status.device == intention.device && status.inode == intention.inode
    } catch {
      // It was moved, or cannot be reached.
      return false
    }
  }

  private func checkGivenUp() throws {
    guard !process.isGivenUp else { throw GivenUp() }
    guard try files.notes.read()?["cancelled"]?[intention.id] == nil else { throw GivenUp() }
  }
}
