import AppGroup
public import FoundationEssentials
public import PropertyLists

extension PeerSession {
  /// Begins to send a file to a peer, and returns at once.
  ///
  /// The intention is stored in the container first; then the content is copied (shared where the file
  /// system can, else inside the kernel) and stored, one file after another, so that they arrive in the
  /// order in which they were sent. If this process ends in the middle, the next session of this name
  /// that is active, or sends a file, does it again.
  ///
  /// - Parameters:
  ///   - url: a regular file; a relative path is one from the current directory. A symbolic link is
  ///     followed, unless the file is to be moved.
  ///   - peer: to whom; it need not have been seen before.
  ///   - metadata: what it gets with the file.
  ///   - options: how.
  /// - Returns: by what to learn what becomes of it, and how far it is.
  /// - Throws: `PeerError`: `fileAccess` for what is no readable regular file; `tooLarge` for the metadata;
  ///   `queueFull`, `noSpace`, or what else the container refuses. It is not sent then.
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

  /// Stores the intention to send a file, and no more: whoever of this name is active, or sends a file,
  /// copies it.
  package func intendTransfer(
    fileAt url: URL, to peer: String, metadata: PropertyListValue? = nil,
    options: PeerFileOptions = .init()
  ) throws -> PeerFileTransfer {
    try betweenPeers("send a file to \"\(peer)\"", peer) {
      try PeerNames.check(peer)
      let source = try SourceFile(
        SourceFile.path(of: url, to: peer), isMoved: options.isMoved, to: peer)
      let intention = FileIntention(source, to: peer, metadata: metadata, options: options)
      let entry = try outgoingFiles.sender().send(
        intention.value, durability: options.durability, expires: options.expiry,
        keepsReceipt: true)
      return PeerFileTransfer(intention, entry, outgoingFiles)
    }
  }

  /// Sends what waits, blocking the calling thread.
  package func sendOutgoingFiles() throws {
    try betweenPeers("send the files of \"\(name)\"") { try outgoingFiles.sendAll() }
  }

  /// The files under this session's name whose end is not known yet: those that wait, are copied or are
  /// taken, and those that ended and were not forgotten; also what an earlier process of this name sent.
  /// In the order of sending.
  ///
  /// - Parameter peer: only those for this one.
  /// - Throws: `PeerError`, for what the container refuses.
  /// - Complexity: one listing, and reading a small file for each.
  public func fileTransfers(to peer: String? = nil) throws -> [PeerFileTransfer] {
    try betweenPeers("list the files of \"\(name)\"") {
      try outgoingFiles.sender().receipts().compactMap { receipt in
        guard let intention = FileIntention(receipt.payload),
          peer == nil || peer?.utf8.elementsEqual(intention.peer.utf8) == true
        else { return nil }
        return PeerFileTransfer(intention, receipt.id, outgoingFiles)
      }
    }
  }

  /// The files that are being copied for this peer right now, and how far they are.
  ///
  /// - Throws: `PeerError`, for what the container refuses.
  /// - Complexity: one listing, and four system calls for each file that waits.
  public func incomingFiles() throws -> [(sender: String, progress: PeerFileProgress)] {
    try betweenPeers("look for files for \"\(name)\"") {
      try incoming.incomingAttachments().map {
        (
          $0.sender,
          PeerFileProgress(completedBytes: $0.completedBytes, totalBytes: $0.totalBytes)
        )
      }
    }
  }

  /// Becomes the one who receives the files for this name, one process at a time. That needs no
  /// `activate()`.
  ///
  /// - Parameters:
  ///   - deadline: until when to wait for another receiver; one that is stopped is replaced. By default 10
  ///     seconds from now.
  ///   - maximumDeliveries: after so many deliveries, also to receivers before that crashed, what is not
  ///     ended has failed: its sender learns it, and it is kept: see `failures(for:)`. By default any number.
  /// - Throws: `PeerError`: `replaced`, its `holder` who receives instead; or what the container
  ///   refuses.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func receiveFiles(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) throws -> PeerFileReceiver {
    try betweenPeers(receiving) {
      do {
        let consumer = try incoming.consume(
          until: deadline, maximumDeliveries: maximumDeliveries)
        return PeerFileReceiver(consumer, for: name)
      } catch {
        throw busy(error)
      }
    }
  }

  /// Becomes the one who receives the files for this name; see the form without `async`. Cancelling the
  /// task ends the wait as `cancelled`.
  public func receiveFiles(
    until deadline: ContinuousClock.Instant? = nil, maximumDeliveries: Int? = nil
  ) async throws -> PeerFileReceiver {
    try await betweenPeers(receiving) {
      do {
        let consumer = try await incoming.consume(
          until: deadline, maximumDeliveries: maximumDeliveries)
        return PeerFileReceiver(consumer, for: name)
      } catch {
        throw busy(error)
      }
    }
  }

  private var receiving: String { "receive files for \"\(name)\"" }

  private var incoming: Queue { container.own.queue(PeerNames.files(name)) }

  // Who waits in vain is told who receives instead, as one is who was replaced.
  private func busy(_ error: any Error) -> any Error {
    guard let error = error as? AppGroupError, error.code == .timedOut else { return error }
    return PeerError(
      .replaced, receiving, reason: error.reason, remedy: error.remedy, holder: error.holder,
      underlying: error)
  }
}
