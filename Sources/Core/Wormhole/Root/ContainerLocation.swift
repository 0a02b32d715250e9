import WormholePropertyLists
import WormholeSystem

/// The location of group containers: `$XDG_DATA_HOME/app-groups/<group>`, by default
/// `~/.local/share/app-groups/<group>` (XDG Base Directory Specification 0.8).
package enum ContainerLocation {
  package static func path(forGroup group: String) throws(WormholeError) -> String {
    let action = "find the container of group \"\(group)\""
    guard !group.isEmpty else { throw empty }
    return try directory(action) + "/" + EncodedName(group).component
  }

  static var empty: WormholeError {
    WormholeError(
      .containerMissing, "find the container of group \"\"", path: "",
      reason: "the group identifier is empty", remedy: "name one such as group.com.example.app")
  }

  private static func directory(_ action: String) throws(WormholeError) -> String {
    // The specification says that a relative XDG_DATA_HOME must be ignored.
    if let data = Program.environment("XDG_DATA_HOME"), data.hasPrefix("/") {
      return try whole(data, action) + "/app-groups"
    }
    if let home = Program.homeDirectory, home.hasPrefix("/") {
      return try whole(home, action) + "/.local/share/app-groups"
    }
    let home = Program.homeDirectory.map { "HOME is '\($0)', a relative path" }
    throw WormholeError(
      .containerMissing, action, path: "",
      reason: home ?? "neither XDG_DATA_HOME nor HOME is set",
      remedy: "set HOME, or name a directory instead of a group")
  }

  private static func whole(_ path: String, _ action: String) throws(WormholeError) -> String {
    guard path.isRepaired else { return path }
    throw WormholeError(
      .containerMissing, action, path: path, reason: "this path is not valid UTF-8",
      remedy: "set XDG_DATA_HOME to another")
  }

  /// Returns the groups that have a container, sorted by name.
  ///
  /// - Complexity: One listing; a look at each container, and one file read for each identifier
  ///   that is too long for a file name.
  package static func groups() throws -> [(identifier: String, path: String)] {
    let action = "list the groups"
    let directory = try directory(action)
    return try reporting(action, path: directory) {
      // Missing if no group was ever used.
      let entries = try ifPresent(
        FileDescriptor.open(directory, [.readOnly, .directory]).entries())
      return (entries ?? []).compactMap { entry in
        let path = directory + "/" + entry.name.text
        return group(entry.name, at: path).map { ($0, path) }
      }.ordered { $0.identifier.utf8.lexicographicallyPrecedes($1.identifier.utf8) }
    }
  }

  /// Returns the group of a container's directory; nil if it is not a container or cannot be read.
  private static func group(_ name: FileName, at path: String) -> String? {
    let file = path + "/" + ContainerFormat.fileName
    switch EncodedName.decode(name.bytes) {
    case .foreign: return nil
    case .identifier(let group):
      // One that this user cannot look at is not this user's.
      return (try? fileStatus(file)) != nil ? group : nil
    case .long:
      do {
        let open = try FileDescriptor.open(file, [.readOnly, .nonBlocking, .noFollow])
        let content = try PropertyListValue(
          bytes: open.readToEnd(expectedBytes: 0, maximumBytes: 65_536))
        return content["group"]?.stringValue
      } catch {
        // It belongs to another user or is damaged, so its group is unknown.
        return nil
      }
    }
  }

  /// Creates the directory and its missing parents, private to the user, and flushes them to the
  /// disk: durable content needs a durable container.
  package static func create(_ path: String) throws(WormholeError) {
    var missing: [Substring] = []
    var rest = path[...]
    while !rest.isEmpty, !mayExist(String(rest)) {
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

  /// Waits until nothing was made or removed for a moment in the nearest existing directory above a
  /// removed one: the program that removed it may be about to remove that directory, too (`rm -r`),
  /// which fails if something is made in it. It waits two seconds at most: others may use it.
  package static func awaitQuiet(above path: String) {
    for _ in 0..<40 where hasJustChanged(above: path) { pauseThread(.milliseconds(50)) }
  }

  private static func hasJustChanged(above path: String) -> Bool {
    var rest = path[...]
    while let slash = rest.lastIndex(of: "/") {
      rest = rest[..<slash]
      // One that cannot be examined is not there for this user.
      guard let status = try? fileStatus(rest.isEmpty ? "/" : String(rest)) else { continue }
      // A clock that was set back counts as quiet.
      return WallTime.ago(nanoseconds: 500_000_000) < status.changedMoment
        && status.changedMoment <= WallTime.ago(nanoseconds: 0)
    }
    return false
  }

  private static func synchronizeParent(of directory: Substring) {
    let parent = directory[..<(directory.lastIndex(of: "/") ?? directory.startIndex)]
    // The directory may be changed but not read, or the file system cannot flush it. The container
    // exists, and is as durable as it can be.
    try? FileDescriptor.open(parent.isEmpty ? "/" : String(parent), [.readOnly, .directory])
      .synchronize()
  }
}
