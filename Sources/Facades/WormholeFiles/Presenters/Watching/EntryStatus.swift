import Wormhole
import WormholeSystem

/// The status of an entry at the last look.
struct EntryStatus: Sendable {
  let status: FileStatus
  /// Whether it had just been written: the kernel's clock for files ticks coarsely (every 10 ms on
  /// some machines), so a later write of as many bytes may leave no trace in the status.
  let isFresh: Bool

  private static let tickNanoseconds: Int64 = 20_000_000

  init(_ status: FileStatus) {
    self.status = status
    let now = realTime()
    let seconds = now.seconds - status.modifiedSeconds
    isFresh =
      (-1...1).contains(seconds) && status.size > 0
      && seconds * 1_000_000_000 + now.nanoseconds - status.modifiedNanoseconds
        < Self.tickNanoseconds
  }

  /// Whether content or attributes differ. The contents of a directory do not count.
  func differs(from new: FileStatus) -> Bool {
    !status.isUnwritten(in: new) || differsInAttributes(from: new)
  }

  func differsInAttributes(from new: FileStatus) -> Bool {
    status.kind != new.kind || status.permissions != new.permissions
      || status.owner != new.owner || status.group != new.group
  }

  /// Whether it differs now, or may differ although it looks the same.
  ///
  /// - Parameter writing: the events that report a write.
  func differs(from new: FileStatus, after events: WatchEvents, writing: WatchEvents) -> Bool {
    if differs(from: new) || (isFresh && !events.isDisjoint(with: writing)) { return true }
    // Extended attributes and access lists leave their only trace in this time. So does adding or
    // removing a hard link of the file, which does not matter.
    return events.contains(.attributes) && status.kind != .directory && status.links == new.links
      && (status.changedSeconds, status.changedNanoseconds)
        != (new.changedSeconds, new.changedNanoseconds)
  }

  /// Whether this missing entry is the one that has appeared elsewhere. An inode number alone
  /// proves little, because a file system gives the number of a removed file to the next new one.
  func isMoved(to new: FileStatus) -> Bool {
    status.isUnwritten(in: new) && status.kind == new.kind
  }
}

extension FileStatus {
  /// Whether a later look found the same file, not written since. The contents of a directory do
  /// not count.
  func isUnwritten(in new: FileStatus) -> Bool {
    kind == .directory ? isSameFile(as: new) : Version(self) == Version(new)
  }
}

/// The status of a path; nil if there is no entry, or this user may not see it.
func statusIfVisible(
  _ path: some PathText, at directory: Int32 = Directory.current
) -> FileStatus? {
  // An entry that cannot be seen cannot be shown either: for a presenter it does not exist.
  try? fileStatus(path, at: directory)
}
