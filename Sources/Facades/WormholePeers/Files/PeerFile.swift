public import FoundationEssentials
import Wormhole
public import WormholePropertyLists
import WormholeSystem

/// A received file: deleted with its acknowledgement, unless it was claimed; see `PeerDelivery`.
///
/// To keep it, `claim` it, or move it away from `url`: both have the same effect. It then counts as
/// processed, even if the process dies before it acknowledges.
///
/// ```swift
/// let files = try await PeerSession("watch", in: container).receiveFiles()
/// while let received = try await files.next(until: .now + .seconds(5)) {
///   try received.claim(to: URL(filePath: "/tmp/" + received.name))
///   try received.acknowledge()
/// }
/// ```
public final class PeerFile: PeerDelivery {
  private let entry: QueueEntry
  private let attachment: QueueAttachment
  private let notice: FileNotice

  private init(_ entry: QueueEntry, _ attachment: QueueAttachment, notice: FileNotice) {
    self.entry = entry
    self.attachment = attachment
    self.notice = notice
  }

  /// - Returns: nil if the entry's file is gone; the entry has ended then.
  static func open(_ entry: QueueEntry) throws -> PeerFile? {
    guard let notice = FileNotice(entry.payload), let attachment = entry.attachment else {
      try entry.fail("it is not a file transfer")
      return nil
    }
    do {
      switch try attachment.condition() {
      case .present(notice.size): return PeerFile(entry, attachment, notice: notice)
      case .present(let bytes):
        try entry.fail("it is damaged: \(bytes) bytes of \(notice.size) are there")
      // By a process that died before it could acknowledge.
      case .claimed: try entry.acknowledge()
      case .missing: try entry.fail("its content is not there")
      }
    } catch let error as AppGroupError where error.code == .notAValue {
      try entry.fail(error.reason)
    }
    return nil
  }

  /// The id of the transfer.
  public var id: String { notice.id }
  /// The sender, by the name that it gave itself.
  public var sender: String { entry.sender }
  /// The last component of the name that it had at its sender; never a path.
  public var name: String { notice.name }
  /// Its place until it is acknowledged; a redelivery has a different one.
  public var url: URL { URL(filePath: attachment.path, directoryHint: .notDirectory) }
  /// Its size in bytes.
  public var size: Int64 { notice.size }
  /// The metadata that was sent with it.
  public var metadata: PropertyListValue? { notice.metadata }
  /// When it was stored, by its sender's clock, which never goes back.
  public var sent: Date { entry.sent }
  /// Whether it was delivered before, and perhaps handled.
  public var isRedelivery: Bool { entry.isRedelivery }
  /// How often it was delivered, this time included.
  public var deliveries: Int { entry.deliveries }

  private func action(_ verb: String) -> String { "\(verb) a file from \"\(sender)\"" }

  /// Whether its content can be verified: its sender computed a checksum, because it copied the
  /// bytes. There is none for a file that was moved, that shares its content with the source, or
  /// that has holes, because the sender did not read the bytes.
  public var hasChecksum: Bool { notice.checksum != nil }

  /// Reads the content and compares it with the checksum that its sender computed. Its size was
  /// compared before it was delivered.
  ///
  /// This reads the whole file once more, so it is not done for every file. Blocks its thread.
  ///
  /// - Returns: false if there is no checksum.
  /// - Throws: `PeerError.Code.damaged`; `.fileAccess` when it was claimed; `.replaced`; or an
  ///   error of the container.
  @discardableResult
  public func verify() throws -> Bool {
    guard let checksum = notice.checksum else { return false }
    try betweenPeers(action("verify"), sender) {
      try verify(AttachmentChecksum.value(of: content(action("verify"))), checksum)
    }
    return true
  }

  private func verify(_ found: UInt64, _ checksum: UInt64) throws(PeerError) {
    guard found != checksum else { return }
    throw PeerError(
      .damaged, action("verify"), peer: sender,
      reason:
        "its content differs from the one that was sent: its checksum is \(String(found, radix: 16)), not "
        + String(checksum, radix: 16), remedy: "ask for it again")
  }

  private func content(_ action: String) throws -> FileDescriptor {
    guard let file = try attachment.open() else {
      throw PeerError(
        .fileAccess, action, peer: sender, reason: "it was claimed, or moved away, already")
    }
    return file
  }

  // MARK: Claiming

  /// Makes the file the receiver's own: a rename, or a copy onto another file system, which is
  /// verified and on the disk before it gets its name.
  ///
  /// A receiver that was replaced while it was stopped claims nothing. Only on another file system
  /// may it have claimed a copy, if it was stopped just then.
  ///
  /// - Parameter destination: the new place; an existing file is replaced in one step.
  /// - Throws: `PeerError.Code.fileAccess` when that is impossible, or the file was claimed before;
  ///   `.replaced`; `.damaged`. A file at the destination is then intact.
  public func claim(to destination: URL) throws {
    try betweenPeers(claiming, sender) {
      let path = try SourceFile.path(of: destination, to: sender)
      do {
        if try attachment.claim(to: path) { return }
        try copy(to: path)
      } catch let error as Errno {
        throw PeerError(
          .fileAccess, claiming, peer: sender, reason: "it cannot become \(path): \(error)",
          remedy: error == .noSuchFile ? "make the directory first, and claim once" : nil)
      }
    }
  }

  private var claiming: String { action("claim") }

  private func copy(to path: String) throws {
    let source = try content(claiming)
    let parent = path[...(path.lastIndex(of: "/") ?? path.startIndex)]
    let staged = parent + ".claimed-" + Nonce.next()
    let target = try FileDescriptor.open(
      staged, [.readWrite, .create, .exclusive, .noFollow])
    do {
      var copy = ContentCopy(check: {})
      try copy.copy(source, source.status(), to: target)
      if let checksum = notice.checksum {
        try target.seek(to: 0)
        try verify(AttachmentChecksum.value(of: target), checksum)
      }
      try target.synchronize()
      // Replaced meanwhile: then the file belongs to the other receiver.
      guard case .present = try attachment.condition() else { throw Errno.noSuchFile }
      try rename(staged, at: Directory.current, to: path, at: Directory.current)
      try FileDescriptor.open(String(parent), [.readOnly, .directory]).synchronize()
    } catch {
      // It has its final name, or the error that is being thrown names the problem.
      try? removeFile(staged)
      throw error
    }
    try attachment.markClaimed()
  }

  // MARK: Ending it

  /// Ends it as processed, and deletes it unless it was claimed; see `PeerDelivery`.
  public func acknowledge() throws {
    try betweenPeers(action("acknowledge"), sender) { try entry.acknowledge() }
  }

  /// Ends it as failed, and deletes it unless it was claimed or is kept; see `PeerDelivery`.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try betweenPeers(action("fail"), sender) { try entry.fail(reason, isKept: isKept) }
  }

  /// Gives it back; see `PeerDelivery`.
  public func release(after pause: Duration) throws {
    try betweenPeers(action("give back"), sender) { try entry.release(after: pause) }
  }
}

/// A file that is being copied for a peer.
///
/// ```swift
/// let watch = try PeerSession("watch", in: container)
/// for incoming in try watch.incomingFiles() {
///   print(incoming.sender, incoming.progress.completedBytes, "of", incoming.progress.totalBytes)
/// }
/// ```
public struct PeerIncomingFile: Sendable, Hashable {
  /// The peer that sends it.
  public let sender: String
  /// How much of it is copied.
  public let progress: PeerFileProgress
}
