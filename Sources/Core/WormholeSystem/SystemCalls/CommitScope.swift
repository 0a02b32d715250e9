/// What an fsync of a file flushes to the disk besides its content. The power tests prove it.
package enum CommitScope: Sendable {
  /// Everything done on the file system before. One journal is written in order, and a rename of
  /// the file is part of what its fsync waits for: xfs, and ext4 with a journal.
  case everything
  /// The same, without a wait: on tmpfs there is no disk.
  case everythingAtOnce
  /// The file's name, if it has only one: ext4 without a journal writes the directory of a file that
  /// got its name since its last fsync.
  case name
  /// Nothing else, as far as is known.
  case content

  package var isEverything: Bool { self == .everything || self == .everythingAtOnce }
}

extension FileDescriptor {
  /// Returns what an fsync of a file on this file's file system flushes to the disk.
  package func commitScope() throws(Errno) -> CommitScope {
    switch try fileSystem().magic {
    case 0x0102_1994: .everythingAtOnce
    case 0x5846_5342: .everything
    case 0xEF53: try Self.commitScope(ofExt: status().device)
    default: .content
    }
  }

  /// ext2 has ext4's magic number, so the kernel's list of ext4's file systems is asked. A file
  /// system that is not in it counts as ext2.
  private static func commitScope(ofExt device: UInt64) throws(Errno) -> CommitScope {
    let (major, minor) = deviceNumbers(device)
    do throws(Errno) {
      let target = try linkTarget("/sys/dev/block/\(major):\(minor)")
      let name = target.split(separator: "/").last ?? ""
      let task = try open("/sys/fs/ext4/\(name)/journal_task", .readOnly)
      let text = try task.readToEnd(expectedBytes: 0, maximumBytes: 4_096)
      // The number of the journal's thread, or "<none>".
      return text.first.map { (UInt8(ascii: "1")...UInt8(ascii: "9")).contains($0) } ?? false
        ? .everything : .name
    } catch {
      guard [.noSuchFile, .accessDenied, .notPermitted].contains(error) else { throw error }
      return .content
    }
  }
}

/// The numbers of a device, as /proc and /sys write them: the encoding of makedev(3).
func deviceNumbers(_ device: UInt64) -> (major: UInt64, minor: UInt64) {
  (device >> 8 & 0xFFF | device >> 32 & 0xFFFF_F000, device & 0xFF | device >> 12 & 0xFFFF_FF00)
}
