import SystemCalls

/// Where the containers of groups live: `$XDG_DATA_HOME/app-groups/<group>`, by default
/// `~/.local/share/app-groups/<group>` (XDG Base Directory Specification 0.8).
package enum ContainerLocation {
  package static func path(forGroup group: String) throws(AppGroupError) -> String {
    let action = "find the container of group \"\(group)\""
    guard !group.isEmpty else {
      throw AppGroupError(
        .containerMissing, action, path: "", reason: "the group identifier is empty",
        remedy: "name one such as group.com.example.app")
    }
    let base: String
    // A relative XDG_DATA_HOME is to be ignored, says the specification.
    if let data = Program.environment("XDG_DATA_HOME"), data.hasPrefix("/") {
      base = data
    } else if let home = Program.homeDirectory, home.hasPrefix("/") {
      base = home + "/.local/share"
    } else {
      throw AppGroupError(
        .containerMissing, action, path: "", reason: "neither XDG_DATA_HOME nor HOME is set",
        remedy: "set HOME, or name a directory instead of a group")
    }
    return base + "/app-groups/" + EncodedName(group).component
  }

  /// Makes the directory and what is missing above it, private to the user, and puts them on the
  /// disk: what is durable in a container is so with the container.
  static func create(_ path: String) throws(AppGroupError) {
    var missing: [Substring] = []
    var rest = path[...]
    while !rest.isEmpty, !exists(String(rest)) {
      missing.append(rest)
      guard let slash = rest.lastIndex(of: "/") else { break }
      rest = rest[..<slash]
    }
    for directory in missing.reversed() {
      do throws(Errno) {
        try makeDirectory(String(directory), mode: 0o700)
      } catch {
        // Another process may have been quicker.
        guard error == .alreadyExists else {
          throw .refused("make the container", path: String(directory), error)
        }
      }
      synchronizeParent(of: directory)
    }
  }

  private static func synchronizeParent(of directory: Substring) {
    let parent = directory[..<(directory.lastIndex(of: "/") ?? directory.startIndex)]
    do throws(Errno) {
      try FileDescriptor.open(parent.isEmpty ? "/" : String(parent), [.readOnly, .directory])
        .synchronize()
    } catch {
      // A directory that may be changed but not read, or a file system that cannot: the container
      // is there, and as durable as it can be.
      return
    }
  }

  private static func exists(_ path: String) -> Bool {
    do throws(Errno) {
      _ = try fileStatus(path)
      return true
    } catch {
      // Whatever else is wrong with it, making it will say.
      return error != .noSuchFile
    }
  }
}
