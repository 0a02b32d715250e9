import WormholeSystem

// The source of a transfer that was copied although it is to be moved, and is removed in the end.
extension FileIntention {
  /// What becomes of the source.
  enum SourceState {
    /// It is there, and nobody else removes it or takes the transfer back.
    case locked
    /// It is not there any more, or somebody else's file, or it was never to be removed.
    case gone
    /// Another process has it locked.
    case busy
  }

  /// Whether the very file that was sent is there.
  var isSourceThere: Bool {
    // An error means that the file was moved, or cannot be reached: nothing may be done with it then.
    (try? fileStatus(source)).map(isSource) ?? false
  }

  private func isSource(_ status: FileStatus) -> Bool {
    status.device == device && status.inode == inode
  }

  /// Does something with the source locked (flock(2)), if it is there.
  ///
  /// A sender that was stopped just before it removes the source would otherwise remove, once it is
  /// continued, what another process has put back under the same name by then. The kernel releases the
  /// lock of a process that is killed. Nobody waits for it.
  func withSource<Result>(_ body: (SourceState) throws -> Result) throws -> Result {
    guard options.isMoved else { return try body(.gone) }
    let file: FileDescriptor
    do throws(Errno) {
      file = try FileDescriptor.open(source, [.readOnly, .nonBlocking, .noFollow])
    } catch {
      switch error {
      case .noSuchFile, .notDirectory, .tooManyLinks, .noSuchDevice, .accessDenied:
        return try body(.gone)
      default: throw error
      }
    }
    guard isSource(try file.status()) else { return try body(.gone) }
    guard try file.tryLock(.exclusive) else { return try body(.busy) }
    // It may have been removed before it was locked.
    return try body(isSourceThere ? .locked : .gone)
  }
}
