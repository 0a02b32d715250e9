import Glibc
import WormholeShims

/// The status of a file as the kernel reports it. The corresponding C structure is `stat`.
package struct FileStatus: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case regular, directory, symbolicLink, fifo, socket, device
  }

  package let device: UInt64
  package let inode: UInt64
  package let links: UInt64
  package let owner: UInt32
  package let group: UInt32
  /// The permission bits, set-id bits included.
  package let permissions: UInt32
  package let kind: Kind
  /// The size of the content in bytes.
  package let size: Int64
  /// The disk space that the content takes in bytes; less than the size if there are holes.
  package let allocatedBytes: Int64
  /// The block size of the file system, or a larger size that it prefers for transfers.
  package let blockBytes: Int
  package let modifiedSeconds: Int64
  package let modifiedNanoseconds: Int64
  /// The time of the last change of the content or the metadata; no program can choose it.
  package let changedSeconds: Int64
  package let changedNanoseconds: Int64
  /// The same times, to calculate with.
  package var modifiedMoment: WallTime {
    WallTime(seconds: modifiedSeconds, nanoseconds: modifiedNanoseconds)
  }
  package var changedMoment: WallTime {
    WallTime(seconds: changedSeconds, nanoseconds: changedNanoseconds)
  }
  /// How long ago the content was last changed; negative for a future time.
  package var age: Duration { realTime() - modifiedMoment }
  /// How long ago the content or the metadata was last changed.
  package var sinceChange: Duration { realTime() - changedMoment }
  /// The device that the file represents, if it is a device file.
  package let representedDevice: UInt64

  init(_ raw: stat) {
    device = UInt64(raw.st_dev)
    inode = UInt64(raw.st_ino)
    links = UInt64(raw.st_nlink)
    owner = raw.st_uid
    group = raw.st_gid
    permissions = raw.st_mode & 0o7777
    size = Int64(raw.st_size)
    // In units of 512 bytes, whatever the block size of the file system (stat(3type)).
    allocatedBytes = Int64(clamping: Int128(raw.st_blocks) * 512)
    blockBytes = Int(raw.st_blksize)
    modifiedSeconds = Int64(raw.st_mtim.tv_sec)
    modifiedNanoseconds = Int64(raw.st_mtim.tv_nsec)
    changedSeconds = Int64(raw.st_ctim.tv_sec)
    changedNanoseconds = Int64(raw.st_ctim.tv_nsec)
    representedDevice = UInt64(raw.st_rdev)
    kind =
      switch raw.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      case S_IFIFO: .fifo
      case S_IFSOCK: .socket
      default: .device
      }
  }

  /// What a file and its file system keep as long as the file exists.
  package struct Identity: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64
  }

  package var identity: Identity { Identity(device: device, inode: inode) }

  /// Returns whether both describe the same file on the same file system.
  package func isSameFile(as other: FileStatus) -> Bool { identity == other.identity }
}

extension FixedWidthInteger {
  /// The sum with another file's size, or the largest number: a sparse file may have any size.
  package func adding(size: some BinaryInteger) -> Self {
    Self(clamping: Int128(self) + Int128(size))
  }
}

extension FileDescriptor {
  /// Returns the status of the open file. The corresponding C function is `fstat`.
  package func status() throws(Errno) -> FileStatus {
    var raw = stat()
    _ = try perform(.fstat) { fstat(rawValue, &raw) }
    return FileStatus(raw)
  }

  /// Sets the modification time; the access time stays. Only the file's owner may choose a time
  /// (utimensat(2)). The corresponding C function is `futimens`.
  package func setModified(seconds: Int64, nanoseconds: Int64) throws(Errno) {
    _ = try perform(.futimens) {
      withModificationTime(seconds, nanoseconds: nanoseconds) { futimens(rawValue, $0) }
    }
  }

  /// Sets owner and group; nil keeps the current one. The corresponding C function is `fchown`,
  /// which clears the set-id bits (chown(2)).
  package func setOwner(_ owner: UInt32?, group: UInt32?) throws(Errno) {
    _ = try perform(.fchown) { fchown(rawValue, owner ?? .max, group ?? .max) }
  }

  /// Sets the permission bits. The corresponding C function is `fchmod`.
  package func setPermissions(_ permissions: UInt32) throws(Errno) {
    _ = try perform(.fchmod) { fchmod(rawValue, permissions) }
  }

  /// Returns the kind of the file's file system, from its magic number. The C function is
  /// `fstatfs`.
  package func fileSystem() throws(Errno) -> FileSystemKind {
    var magic: UInt32 = 0
    _ = try perform(.fstatfs) { csys_file_system_magic(rawValue, &magic) }
    return FileSystemKind(magic: magic)
  }
}

/// Returns the status of a path without following a symbolic link. The C function is `fstatat`.
package func fileStatus(
  _ path: some PathText, at directory: Int32 = Directory.current, followingLinks: Bool = false
) throws(Errno) -> FileStatus {
  var raw = stat()
  _ = try perform(.fstatat) {
    path.withCPath(at: directory) {
      fstatat($0, $1, &raw, followingLinks ? 0 : AT_SYMLINK_NOFOLLOW)
    }
  }
  return FileStatus(raw)
}

/// Sets the modification time of an entry, without following a symbolic link; the access time
/// stays. The corresponding C function is `utimensat`.
package func setModified(
  _ name: FileName, at directory: Int32, seconds: Int64, nanoseconds: Int64
) throws(Errno) {
  _ = try perform(.utimensat) {
    name.withCPath { name in
      withModificationTime(seconds, nanoseconds: nanoseconds) {
        utimensat(directory, name, $0, AT_SYMLINK_NOFOLLOW)
      }
    }
  }
}

/// Sets the times of an entry to now, without following a symbolic link; any user who may write it
/// may do so. The corresponding C function is `utimensat`.
package func touch(_ path: some PathText, at directory: Int32) throws(Errno) {
  _ = try perform(.utimensat) {
    path.withCPath(at: directory) { utimensat($0, $1, nil, AT_SYMLINK_NOFOLLOW) }
  }
}

/// Sets owner and group of an entry, without following a symbolic link; nil keeps the current one.
/// The corresponding C function is `fchownat`.
package func setOwner(
  _ name: FileName, at directory: Int32, _ owner: UInt32?, group: UInt32?
) throws(Errno) {
  _ = try perform(.fchownat) {
    name.withCPath {
      fchownat(directory, $0, owner ?? .max, group ?? .max, AT_SYMLINK_NOFOLLOW)
    }
  }
}

/// Sets the permission bits of an entry, which must not be a symbolic link, because the call would
/// follow it. The corresponding C function is `fchmodat`.
package func setPermissions(
  _ name: FileName, at directory: Int32, _ permissions: UInt32
) throws(Errno) {
  _ = try perform(.fchmodat) { name.withCPath { fchmodat(directory, $0, permissions, 0) } }
}

// The two times for `utimensat`; the first one, the access time, stays.
private func withModificationTime<Result>(
  _ seconds: Int64, nanoseconds: Int64, _ body: (UnsafePointer<timespec>) -> Result
) -> Result {
  let omit = (1 << 30) - 2  // UTIME_OMIT
  var times = (
    timespec(tv_sec: 0, tv_nsec: omit),
    timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
  )
  return withUnsafePointer(to: &times) {
    $0.withMemoryRebound(to: timespec.self, capacity: 2, body)
  }
}

/// A kind of file system. Here it only matters whether the kernel sees every change of a file.
package struct FileSystemKind: Hashable, Sendable {
  package let magic: UInt32

  package init(magic: UInt32) {
    self.magic = magic
  }

  /// The names are those of `statfs(2)`. On these file systems other machines change files without
  /// an inotify event on this one (inotify(7), "Limitations and caveats").
  private static let networks: [UInt32: String] = [
    0x6969: "nfs", 0x517B: "smb", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb2", 0x0102_1997: "9p",
    0x6573_5546: "fuse", 0x5346_414F: "afs", 0x00C3_6400: "ceph", 0x564C: "ncp",
    0x7375_7245: "coda", 0x0BD0_0BD0: "lustre", 0x4750_4653: "gpfs", 0x786F_4256: "vboxsf",
    0x1983_0326: "fhgfs", 0x7461_636F: "ocfs2", 0x0116_1970: "gfs2",
  ]

  /// Whether the file system flushes new names to the disk within five seconds by itself, as ext4
  /// does (mount option `commit`, ext4(5)), or has no disk (tmpfs).
  package var commitsWithinSeconds: Bool { [0xEF53, 0x0102_1994].contains(magic) }

  /// Whether a directory's times, once looked at, differ after its next change, however soon that
  /// follows: ext4, xfs, btrfs and tmpfs, since Linux 6.13.
  package var showsEachChange: Bool {
    Self.hasFineTimes && [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994].contains(magic)
  }

  private static let hasFineTimes: Bool = {
    var kernel = utsname()
    guard uname(&kernel) == 0 else { return false }
    let release = withUnsafeBytes(of: kernel.release) { bytes in
      bytes.prefix { $0 != 0 }.split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        .prefix(2).compactMap { Int(String(decoding: $0, as: UTF8.self)) }
    }
    return release.count == 2 && (release[0], release[1]) >= (6, 13)
  }()

  /// The name of the network file system, or nil for a local one.
  package var networkName: String? { Self.networks[magic] }
}
