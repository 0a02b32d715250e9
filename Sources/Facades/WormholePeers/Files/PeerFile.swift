public import FoundationEssentials
import Wormhole
public import WormholePropertyLists
import WormholeSystem

/// A received file: deleted when acknowledged, unless it was moved away; see `PeerDelivery`.
///
/// To keep it, `move(to:)` it, or rename the file at `url`: both have the same effect. It then counts
/// as processed, even if the process dies before it acknowledges.
///
/// ```swift
/// let files = try await PeerSession("watch", in: container).receiveFiles()
/// while let received = try await files.next(until: .now + .seconds(5)) {
///   try received.move(to: URL(filePath: "/tmp/" + received.name))
///   try received.acknowledge()
/// }
/// ```
public final class PeerFile: PeerDelivery {
  private let entry: PlainEntry
  private let attachment: QueueAttachment
  private let notice: FileNotice

  private init(_ entry: PlainEntry, _ attachment: QueueAttachment, notice: FileNotice) {
    self.entry = entry
    self.attachment = attachment
    self.notice = notice
  }

  /// - Returns: nil if the entry's file is gone; the entry has then ended.
  static func open(_ entry: PlainEntry) throws -> PeerFile? {
    guard let notice = FileNotice(entry.payload), let attachment = entry.attachment else {
      try entry.fail("it is not a file transfer")
      return nil
    }
    do {
      switch try attachment.condition() {
      case .present(notice.size): return PeerFile(entry, attachment, notice: notice)
      case .present(let bytes):
        try entry.fail("it is damaged: \(bytes) bytes of \(notice.size) are there")
      // A process moved it and died before it could acknowledge.
      case .movedAway: try entry.acknowledge()
      case .missing: try entry.fail("its content is not there")
      }
    } catch let error as WormholeError where error.code == .notAValue {
      try entry.fail(error.reason)
    }
    return nil
  }

  /// The id of the transfer.
  public var id: String { notice.id }
  /// The sender, by the name that it gave itself.
  public var sender: String { entry.sender }
  /// The last component of its name at the sender; never a path.
  public var name: String { notice.name }
  /// Its place until it is acknowledged; a redelivery has a different one.
  public var url: URL { URL(filePath: attachment.path, directoryHint: .notDirectory) }
  /// Its size in bytes.
  public var size: Int64 { notice.size }
  /// The metadata sent with it.
  public var metadata: PropertyListValue? { notice.metadata }
  /// When it was stored, by its sender's clock, which never goes back.
  public var sent: Date { entry.sent }
  /// Whether it was delivered before, and perhaps handled.
  public var isRedelivery: Bool { entry.isRedelivery }
  /// The number of this attempt: 1 for the first.
  public var attempt: Int { entry.attempt }

  private func action(_ verb: String) -> String { "\(verb) a file from \"\(sender)\"" }

  // MARK: Moving it

  /// Makes the file the receiver's own: a rename, or a copy onto another file system that is on the
  /// disk before it gets its name.
  ///
  /// A receiver that was replaced while it was stopped moves nothing. Only on another file system
  /// may it have made a copy, if it was stopped at that moment.
  ///
  /// - Parameter destination: the new place; an existing file is replaced in one step.
  /// - Throws: `WormholeError.Code.fileAccess` if that is impossible, or the file was moved before;
  ///   `.replaced`. A file at the destination is then intact.
  public func move(to destination: URL) throws {
    _ = try betweenPeers(action("move"), sender) {
      try move(.replace, toFirstFreeOf: [SourceFile.path(of: destination, to: sender)])
    }
  }

  /// Does the same, but replaces no file.
  ///
  /// - Parameter paths: Absolute, in one directory.
  /// - Returns: The first free path, which the file now has; nil if all are taken.
  package func move(toFirstFreeOf paths: some Sequence<String>) throws -> String? {
    try betweenPeers(action("move"), sender) { try move(.keep, toFirstFreeOf: paths) }
  }

  private func move(
    _ mode: RenameMode, toFirstFreeOf paths: some Sequence<String>
  ) throws -> String? {
    var copy: ReceivedCopy?
    for path in paths {
      do {
        if copy == nil, try attachment.move(to: path, mode) { return path }
        let staged = try copy ?? copied(beside: path)
        copy = staged
        // Replaced meanwhile: the file belongs to the other receiver.
        guard case .present = try attachment.condition() else { throw Errno.noSuchFile }
        try staged.move(to: path, mode)
        try attachment.removeContent()
        return path
      } catch let error as Errno where error == .alreadyExists && mode == .keep {
        continue
      } catch let error as Errno {
        throw WormholeError(
          .fileAccess, action("move"), peer: sender, reason: "it cannot become \(path): \(error)",
          remedy: error == .noSuchFile ? "make the directory first, and move it once" : nil,
          errorNumber: error.rawValue)
      }
    }
    return nil
  }

  private func copied(beside path: String) throws -> ReceivedCopy {
    guard let source = try attachment.open() else {
      throw WormholeError(
        .fileAccess, action("move"), peer: sender, reason: "it was moved away already")
    }
    let copy = try ReceivedCopy(
      in: String(path[...(path.lastIndex(of: "/") ?? path.startIndex)]))
    try copy.fill(from: source)
    return copy
  }

  // MARK: Ending it

  /// Ends it as processed, and deletes it unless it was moved away; see `PeerDelivery`.
  public func acknowledge() throws {
    try betweenPeers(action("acknowledge"), sender) { try entry.acknowledge() }
  }

  /// Ends it as failed, and deletes it unless it was moved away or is kept; see `PeerDelivery`.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try betweenPeers(action("fail"), sender) { try entry.fail(reason, isKept: isKept) }
  }

  /// Ends a failed attempt; see `PeerDelivery`.
  public func retry(after pause: Duration, because reason: String) throws {
    try betweenPeers(action("give back"), sender) {
      try entry.retry(after: pause, because: reason)
    }
  }

  /// Gives it back unhandled; see `PeerDelivery`.
  public func giveBack() throws {
    try betweenPeers(action("give back"), sender) { try entry.giveBack() }
  }
}

/// The copy of a received file on another file system, under a hidden name until it is complete.
///
/// It is locked as long as its maker lives, so the next copy in the same directory removes those
/// that killed processes left.
private final class ReceivedCopy {
  private let file: SharedDescriptor
  /// With a slash at its end.
  private let directory: String
  private let path: String

  private static let prefix = ".received-"

  init(in directory: String) throws(Errno) {
    self.directory = directory
    // The next receiver tries again; nothing else depends on it.
    try? Self.removeLeftovers(in: directory)
    path = directory + Self.prefix + Nonce.next()
    file = SharedDescriptor(
      try FileDescriptor.open(path, [.readWrite, .create, .exclusive, .noFollow]))
    // Free, because no one else locks a young one; some file systems have no locks.
    _ = try? file.descriptor.tryLock(.exclusive)
  }

  private static func removeLeftovers(in directory: String) throws(Errno) {
    let open = try FileDescriptor.open(directory, [.readOnly, .directory])
    for name in try open.entries().map(\.name) {
      guard name.hasPrefix(prefix), Nonce.isOne(name.text.dropFirst(prefix.count)) else { continue }
      // Fails if another receiver removed it, or this user may not; both are harmless.
      try? removeIfLeft(name, at: open.rawValue)
    }
  }

  private static func removeIfLeft(_ name: FileName, at directory: Int32) throws(Errno) {
    // Open for writing, or NFS grants no such lock (flock(2)).
    let left = try FileDescriptor.open(name, at: directory, [.readWrite, .noFollow, .nonBlocking])
    guard try left.status().isStale, try left.tryLock(.exclusive) else { return }
    try removeFile(name, at: directory)
  }

  // It has its final name, or the error that is being thrown names the problem.
  deinit { try? removeFile(path) }

  /// Copies the content, and returns once it is on the disk.
  func fill(from source: borrowing FileDescriptor) throws {
    var copy = ContentCopy(check: {})
    try copy.copy(source, source.status(), to: file.descriptor)
    try file.descriptor.synchronize()
  }

  /// Gives it its name, in one step, and returns once that is on the disk.
  func move(to destination: String, _ mode: RenameMode) throws(Errno) {
    try rename(path, at: Directory.current, to: destination, at: Directory.current, mode)
    try FileDescriptor.open(directory, [.readOnly, .directory]).synchronize()
  }
}
