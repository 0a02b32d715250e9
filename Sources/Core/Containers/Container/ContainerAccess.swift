package import SystemCalls

/// The users that may use a container.
public enum ContainerAccess: Sendable, Hashable {
  /// Only its owner: directories are 0700 and files 0600.
  case owner
  /// Also the members of the directory's Unix group: directories are 2770 and files 0660.
  case group

  var directoryMode: UInt32 { self == .owner ? 0o700 : 0o2770 }
  package var fileMode: UInt32 { self == .owner ? 0o600 : 0o660 }

  /// Refuses a container that lets other users in.
  ///
  /// - Parameter isContainer: Whether the directory is a container already. Any other directory may
  ///   be a project or a home, whose mode is no concern of ours.
  func check(
    _ status: FileStatus, path: String, isContainer: () -> Bool
  ) throws(AppGroupError) {
    let elsewhere =
      "name a directory of its own: mkdir -m \(self == .owner ? "0700" : "2770") DIRECTORY"
    let action = "open the container"
    guard status.kind == .directory else {
      throw AppGroupError(
        .containerUnsafe, action, path: path, reason: "it is not a directory",
        remedy: "name the directory itself")
    }
    let user = Program.effectiveUser
    let mode = String(status.permissions, radix: 8)
    switch self {
    case .owner:
      guard status.owner == user else {
        throw AppGroupError(
          .containerUnsafe, action, path: path,
          reason: "it belongs to user \(status.owner), not to user \(user)",
          remedy: "run as its owner, or chown it")
      }
      guard status.permissions & 0o7077 == 0 else {
        throw AppGroupError(
          .containerUnsafe, action, path: path,
          reason: "its mode is \(mode), which lets others in",
          remedy: !isContainer()
            ? elsewhere
            : status.permissions == 0o2770
              ? "open it with the access of its group, or chmod 0700 '\(path)'"
              : "chmod 0700 '\(path)'")
      }
    case .group:
      guard status.owner == user || Program.isMember(ofGroup: status.group) else {
        throw AppGroupError(
          .containerUnsafe, action, path: path,
          reason: "user \(user) is not in its group \(status.group)",
          remedy: "add the user to the group, or chgrp it")
      }
      guard status.permissions == 0o2770 || status.permissions & 0o7077 == 0 else {
        throw AppGroupError(
          .containerUnsafe, action, path: path,
          reason: "its mode is \(mode); a shared container's is 2770",
          remedy: isContainer() ? "chmod 2770 '\(path)'" : elsewhere)
      }
    }
  }

  /// Returns whether an authorized user wrote a file inside.
  package func trusts(_ status: FileStatus, in directory: FileStatus) -> Bool {
    self == .group || status.owner == directory.owner
  }
}
