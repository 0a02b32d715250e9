public import FoundationEssentials
import Wormhole
public import WormholePropertyLists

extension PeerSession {
  /// Begins to send a file to a peer, and returns at once.
  ///
  /// The intention is stored in the container first. Then the content is copied (shared where the
  /// file system can, else inside the kernel) and stored, one file after another, so files arrive
  /// in the order of sending. If this process ends meanwhile, the next session of this name that is
  /// active, or sends a file, does it again.
  ///
  /// - Parameters:
  ///   - url: a regular file; a relative path starts at the current directory. A symbolic link is
  ///     followed.
  ///   - peer: the peer that gets it; it may be unknown so far.
  ///   - metadata: a property list that it gets with the file.
  ///   - options: how it is sent.
  /// - Returns: the transfer, which shows its progress and how it ends.
  /// - Throws: `WormholeError.Code.fileAccess` unless the URL is a readable regular file; `.tooLarge`
  ///   for the metadata; `.queueFull`, `.noSpace`, or another container error. Then it is not sent.
  /// - Complexity: as `enqueue`, and opening the file.
  @discardableResult
  public func transfer(
    fileAt url: URL, to peer: String, metadata: PropertyListValue? = nil,
    options: PeerFileOptions = .init()
  ) throws -> PeerFileTransfer {
    let transfer = try intendTransfer(fileAt: url, to: peer, metadata: metadata, options: options)
    outgoingFiles.begin()
    return transfer
  }

  /// Stores only the intention to send a file: the next session of this name that is active, or
  /// sends a file, copies it.
  package func intendTransfer(
    fileAt url: URL, to peer: String, metadata: PropertyListValue? = nil,
    options: PeerFileOptions = .init()
  ) throws -> PeerFileTransfer {
    try betweenPeers("send a file to \"\(peer)\"", peer) {
      try PeerNames.check(peer)
      let source = try SourceFile(SourceFile.path(of: url, to: peer), to: peer)
      let intention = FileIntention(source, to: peer, metadata: metadata, options: options)
      let entry = try outgoingFiles.intentions().enqueue(
        intention.value, durability: options.durability, expires: options.expiry,
        keepsReceipt: true)
      return outgoingFiles.transfer(of: intention, as: entry)
    }
  }

  /// Waits until this process copies no more files; if it then exits, it leaves nothing behind.
  package func finishCopying(until deadline: ContinuousClock.Instant) {
    outgoingFiles.waitUntilIdle(until: deadline)
  }

  package func sendOutgoingFiles() throws {
    try betweenPeers("send the files of \"\(name)\"") { try outgoingFiles.sendAll() }
  }

  /// The files sent under this session's name whose receipts were not removed: files that wait, are
  /// copied or are taken, and files that have ended, even those of an earlier process of this name.
  /// In the order of sending.
  ///
  /// - Parameter peer: only files for this peer.
  /// - Complexity: one listing, and reading two small files for each.
  public func fileTransfers(to peer: String? = nil) throws -> [PeerFileTransfer] {
    try betweenPeers("list the files of \"\(name)\"") {
      let transfers = try outgoingFiles.intentions().receipts().compactMap {
        receipt -> PeerFileTransfer? in
        guard let intention = FileIntention(receipt.payload),
          peer == nil || PeerNames.areSame(peer, intention.peer)
        else { return nil }
        return outgoingFiles.transfer(of: intention, as: receipt.id)
      }
      try PeerFileTransfer.findStored(transfers)
      return transfers
    }
  }

  /// The file transfer with an id, of any sender; nil for other text, or if its receipt was
  /// removed.
  ///
  /// - Complexity: as `fileTransfers()`, for each peer that has sent files, until it is found.
  public func fileTransfer(id: String) throws -> PeerFileTransfer? {
    guard FileIntention.isID(id) else { return nil }
    if let own = try fileTransfers().first(where: { $0.id == id }) { return own }
    let senders = try betweenPeers("look for a file") {
      try container.own.queueNames().compactMap { PeerNames.peer(ofOutgoingFiles: $0) }
    }
    for sender in senders where !PeerNames.areSame(sender, name) && PeerNames.isName(sender) {
      let session = try PeerSession(sender, in: container)
      if let found = try session.fileTransfers().first(where: { $0.id == id }) { return found }
    }
    return nil
  }
}
