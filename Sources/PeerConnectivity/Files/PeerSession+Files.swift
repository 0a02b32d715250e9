public import FoundationEssentials
public import PropertyLists

extension PeerSession {
  /// Begins to send a file to a peer, and returns at once.
  ///
  /// The intention is stored in the container first; then the content is copied (shared where the file
  /// system can, else inside the kernel) and stored. If this process ends in the middle, the next
  /// session of this name that is active does it again.
  ///
  /// - Throws: `PeerError`: `unsupportedValue` for metadata that is no property list; `fileAccess` for
  ///   what is no readable regular file.
  @discardableResult
  public func transfer(
    fileAt url: URL, to peer: String, metadata: PropertyListValue? = nil,
    options: PeerFileOptions = .init()
  ) throws -> PeerFileTransfer { preconditionFailure("unbuilt") }

  /// The files under this session's name whose end is not known yet; see `transfers(to:)`.
  public func fileTransfers(to peer: String? = nil) throws -> [PeerFileTransfer] {
    preconditionFailure("unbuilt")
  }

  /// The files that are being copied for this peer right now, and how far they are.
  public func incomingFiles() throws -> [(sender: String, progress: PeerFileProgress)] {
    preconditionFailure("unbuilt")
  }

  /// Becomes the one who receives the files for this name, one process at a time; see
  /// `receiveMessages`.
  public func receiveFiles(until deadline: ContinuousClock.Instant? = nil) throws
    -> PeerFileReceiver
  {
    preconditionFailure("unbuilt")
  }

  /// Becomes the one who receives the files for this name; see the form without `async`.
  public func receiveFiles(
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PeerFileReceiver { preconditionFailure("unbuilt") }
}
