import Dispatch
public import FoundationEssentials
import Synchronization
public import Wormhole
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
  /// - Throws: `PeerError`: `damaged`; `fileAccess` when it was claimed; `replaced`; or an error of
  ///   the container.
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
  /// - Throws: `PeerError`: `fileAccess` when that is impossible, or the file was claimed before;
  ///   `replaced`; `damaged`. A file at the destination is then intact.
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

/// How much of a file is copied.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let transfer = try phone.transfer(fileAt: file, to: "watch")
/// let token = transfer.observeProgress { progress in print(Int(progress.fraction * 100), "%") }
/// ```
public struct PeerFileProgress: Sendable, Hashable {
  /// Bytes copied.
  public let completedBytes: Int64
  /// Bytes of the whole.
  public let totalBytes: Int64
  /// Between 0 and 1; 1 for an empty file.
  public var fraction: Double {
    totalBytes > 0 ? Double(completedBytes) / Double(totalBytes) : 1
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

/// This process's part in a transfer, and its progress.
extension PeerFileTransfer {
  /// What this process knows of the transfer.
  struct State: Sendable {
    /// How many bytes this process has copied; nil if it has copied nothing of it.
    var completed: Int64?
    /// Whether this process has ended it, with success or not.
    var isFinished = false
    var isStored = false
    var isGivenUp = false
    /// The entry that was stored for its peer, if this process knows it.
    var stored: QueueEntryID?
    /// Why this process tries no more, until sending begins again; nil while it tries.
    var halt: (any Error)?
    fileprivate var observers: [ProgressObserver] = []
    fileprivate var reported: ContinuousClock.Instant?
  }

  private static let interval: Duration = .milliseconds(200)

  /// How much is copied; all of it once it is stored.
  public var progress: PeerFileProgress {
    // If the container cannot be read, the progress is unknown; `status()` throws the reason.
    progress(state.withLock(\.completed) ?? (try? completedElsewhere()) ?? 0)
  }

  // Copied by another process, or an earlier one.
  private func completedElsewhere() throws -> Int64 {
    if try files.intentions().status(of: entry) == .processed { return intention.size }
    let incoming = try files.sender(to: peer).queue.incomingAttachments().first {
      $0.id.hasPrefix(intention.attachmentPrefix)
    }
    return incoming?.completedBytes ?? 0
  }

  private func progress(_ completed: Int64) -> PeerFileProgress {
    PeerFileProgress(
      completedBytes: min(completed, intention.size), totalBytes: intention.size)
  }

  /// Calls a handler during the copying, at most a few times a second, and at its end, on a queue
  /// of the transfer's own. If another process copies, the handler is called only at the end.
  ///
  /// - Returns: the observation; it ends when it is cancelled or released.
  public func observeProgress(
    _ handler: @escaping @Sendable (PeerFileProgress) -> Void
  ) -> ObservationToken {
    let observer = ProgressObserver(handler)
    let isUnderWay = state.withLock { state in
      if !state.isFinished { state.observers.append(observer) }
      return !state.isFinished
    }
    if isUnderWay { Task { await finishElsewhere() } } else { report([observer], progress) }
    return ObservationToken(delivery: observer)
  }

  // By any process that copies it; if this process did, it has called the handler already.
  private func finishElsewhere() async {
    do {
      _ = try await files.intentions().finalStatus(of: entry)
      let last = try await Blocking.run { self.progress }
      state.withLock { $0.completed = $0.completed ?? last.completedBytes }
      finish(nil, isStored: last.fraction == 1)
    } catch {
      // The container is gone, so no end can be reported.
      return
    }
  }

  // MARK: Reports of the process that copies

  /// This many bytes are copied.
  func advance(to completed: Int64) {
    let now = ContinuousClock.now
    let observers = state.withLock { state -> [ProgressObserver] in
      state.completed = completed
      if let reported = state.reported, now - reported < Self.interval { return [] }
      state.reported = now
      return state.observers
    }
    report(observers, progress(completed))
  }

  /// It is stored, as this entry if that is known; or, with nil and `isStored` false, it has failed.
  func finish(_ stored: QueueEntryID?, isStored: Bool = true) {
    let (observers, completed) = state.withLock { state in
      state.stored = stored ?? state.stored
      state.isFinished = true
      state.isStored = isStored
      if isStored { state.completed = intention.size }
      defer { state.observers = [] }
      return (state.observers, state.completed ?? 0)
    }
    report(observers, progress(completed))
  }

  /// Calls observers after all earlier reports.
  private func report(_ observers: [ProgressObserver], _ progress: PeerFileProgress) {
    guard !observers.isEmpty else { return }
    reports.async { for observer in observers { observer.report(progress) } }
  }
}

/// A handler that is called with the progress, until it is cancelled.
private final class ProgressObserver: Cancelling {
  private let handler: @Sendable (PeerFileProgress) -> Void
  private let isCancelled = Atomic(false)

  init(_ handler: @escaping @Sendable (PeerFileProgress) -> Void) { self.handler = handler }

  func cancel() { isCancelled.store(true, ordering: .releasing) }

  func report(_ progress: PeerFileProgress) {
    if !isCancelled.load(ordering: .acquiring) { handler(progress) }
  }
}
