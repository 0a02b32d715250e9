import WormholeSystem

// The source of a transfer that was copied instead of moved; it is removed in the end.
extension FileIntention {
  /// What becomes of the source.
  enum SourceState {
    /// It exists, and no other process removes it or takes the transfer back.
    case locked
    /// It is gone, or another program's file has its name, or it was never to be removed.
    case gone
    /// Another process has it locked.
    case busy
  }

  /// Whether the very file that was sent still exists.
  var isSourceThere: Bool {
    // An error means that the file was moved or cannot be reached, so it must be left alone.
    (try? fileStatus(source)).map(isSource) ?? false
  }

  private func isSource(_ status: FileStatus) -> Bool {
    status.device == device && status.inode == inode
  }

  /// Calls a closure with the source locked (flock(2)), if it exists.
  ///
  /// A sender that was stopped just before it removes the source would otherwise remove, when it
  /// continues, a file that another process has put back under the same name by then. The kernel
  /// releases the lock of a process that is killed. No process waits for the lock.
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
