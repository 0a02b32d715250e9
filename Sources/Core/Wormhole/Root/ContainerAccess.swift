package import FoundationEssentials
package import WormholeSystem

/// The users that may use a container.
///
/// ```swift
/// // Every user of the directory's Unix group may take part.
/// let directory = URL(filePath: "/srv/cinema", directoryHint: .isDirectory)
/// let shared = try SharedContainer(url: directory, access: .group)
/// ```
public enum ContainerAccess: Sendable, Hashable {
  /// Only its owner: directories are 0700 and files 0600.
  case owner
  /// Also the members of the directory's Unix group: directories are 2770 and files 0660.
  case group

  /// The access that a directory's mode shows: 2770 is used for no other purpose.
  package init(of status: FileStatus) { self = status.permissions == 0o2770 ? .group : .owner }

  var directoryMode: UInt32 { self == .owner ? 0o700 : 0o2770 }
  package var fileMode: UInt32 { self == .owner ? 0o600 : 0o660 }

  /// Refuses a container that lets other users in.
  ///
  /// - Parameters:
  ///   - status: The status of a directory.
  ///   - path: Its path, for messages.
  ///   - isContainer: Whether the directory is a container already. Any other directory may be a
  ///     project or a home, whose mode does not concern us.
  func check(_ status: FileStatus, path: String, isContainer: () -> Bool) throws(WormholeError) {
    let right = self == .owner ? "0700" : "2770"
    // A directory for everybody, such as /tmp, must keep its mode.
    let mayBeOwn = status.permissions & 0o1000 == 0
    let elsewhere =
      (mayBeOwn ? "chmod \(right) '\(path)' if it is for the container alone, or " : "")
      + "name a directory of its own: mkdir -m \(right) DIRECTORY"
    func refusal(_ reason: String, _ remedy: String) -> WormholeError {
      WormholeError(
        .containerUnsafe, "open the container", path: path, reason: reason, remedy: remedy)
    }
    let user = Program.effectiveUser
    let mode = String(status.permissions, radix: 8)
    switch self {
    case .owner:
      guard status.owner == user else {
        throw refusal(
          "it belongs to user \(status.owner), not to user \(user)",
          "run as its owner, or chown it")
      }
      guard status.permissions & 0o7077 == 0 else {
        throw refusal(
          "its mode is \(mode), which lets others in",
          !isContainer()
            ? elsewhere
            : status.permissions == 0o2770
              ? "open it with the access of its group, or chmod 0700 '\(path)'"
              : "chmod 0700 '\(path)'")
      }
    case .group:
      guard status.owner == user || Program.isMember(ofGroup: status.group) else {
        throw refusal(
          "user \(user) is not in its group \(status.group)",
          "add the user to the group, or chgrp it")
      }
      guard status.permissions == 0o2770 || status.permissions & 0o7077 == 0 else {
        throw refusal(
          "its mode is \(mode); a shared container's is 2770",
          isContainer() ? "chmod 2770 '\(path)'" : elsewhere)
      }
    }
  }

  /// Returns whether an authorized user wrote a file inside.
  package func trusts(_ status: FileStatus, in directory: FileStatus) -> Bool {
    self == .group || status.owner == directory.owner
  }
}

/// The creation of directories and files with the mode of a container's access.
extension ContainerAccess {
  /// Creates a directory with the mode of this access; succeeds if it exists.
  ///
  /// - Parameter staging: The place where the directory is created first, if the umask may remove
  ///   the group's bits. The directory becomes visible only with its full mode, so it never keeps
  ///   the group's other members out, even after a crash.
  package func makeDirectoryIfMissing(
    _ path: String, at directory: Int32, staging: String? = nil
  ) throws(Errno) {
    do throws(Errno) {
      guard self == .group else {
        return try makeDirectory(path, at: directory, mode: directoryMode)
      }
      guard try !exists(path, at: directory) else { return }
      let parent = path.lastIndex(of: "/").map { path[...$0] } ?? ""
      try makeShared(path, (staging ?? parent + ".new-") + Nonce.next(), at: directory)
    } catch {
      guard error == .alreadyExists else { throw error }
    }
  }

  private func makeShared(_ path: String, _ staged: String, at directory: Int32) throws(Errno) {
    try makeDirectory(staged, at: directory, mode: directoryMode & 0o777)
    do throws(Errno) {
      try FileDescriptor.openBeneath(staged, at: directory, [.readOnly, .directory])
        .setPermissions(directoryMode)
      try rename(staged, at: directory, to: path, at: directory, .keep)
    } catch {
      // A sweep removed it already. Otherwise it is empty and harmless.
      try? removeDirectory(staged, at: directory)
      throw error
    }
  }

  // Made once: as an argument it would be an array on the heap each time.
  private static let creation: OpenOptions = [.writeOnly, .create, .exclusive, .noFollow]

  /// Creates a file with the mode of this access, for writing; fails if the name is taken.
  package func createFile(_ path: String, at directory: Int32) throws(Errno) -> FileDescriptor {
    let file = try FileDescriptor.open(path, at: directory, Self.creation, mode: fileMode)
    if self == .group { try file.setPermissions(fileMode) }
    return file
  }

  /// Writes content that will be published to a file that this access created.
  ///
  /// A file whose content expires is marked: see `FileStatus.isMarked`.
  package func write(
    _ content: PublishedContent, to file: borrowing FileDescriptor
  ) throws(Errno) {
    try content.write(to: file)
    guard content.expires else { return }
    do throws(Errno) {
      try file.setPermissions(fileMode | FileStatus.mark)
    } catch {
      // A file system without modes shows the same mode for each file.
      guard error == .notPermitted || error == .unsupported else { throw error }
    }
  }
}

extension FileStatus {
  /// The mark of a value's file: its owner may execute it.
  package static let mark: UInt32 = 0o100

  /// Whether the content of a value's file may not be the value: because it may expire, or because
  /// a transaction may be about to replace it. A reader sees this in the status that it reads in
  /// any case, and looks further only then.
  package var isMarked: Bool { kind == .regular && permissions & Self.mark != 0 }

  /// Whether a file without its final name is so old that no process works on it: a minute.
  package var isStale: Bool { age >= .seconds(60) }

  /// Whether a directory's time shows each later change: when read, it was at least two seconds
  /// old. A kernel's clock for files ticks coarsely, and some file systems count whole seconds.
  func isTrusted(at moment: WallTime) -> Bool { moment - modifiedMoment >= .seconds(2) }

  /// The time of the last change of its content, by the system's clock.
  package var modified: Date {
    Date(timeIntervalSince1970: modifiedMoment.secondsSince1970)
  }
}
