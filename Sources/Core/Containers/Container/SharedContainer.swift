public import FoundationEssentials
package import SystemCalls

/// One directory through which any number of processes share state.
///
/// Its content is property-list files: `ls`, Python's `plistlib` or a shell script can read it and
/// take part. No process can block another by being suspended or killed, no reader sees half a
/// file, and no update is lost; `OnDiskFormat` in the documentation explains how.
///
/// A container is cheap to open (five system calls), thread-safe, and takes one descriptor.
public final class SharedContainer: Sendable {
  /// The container's directory.
  public let url: URL
  /// The group's identifier, if the container was opened by it.
  public let groupIdentifier: String?

  package let root: ContainerRoot

  /// Opens the container of a group, and creates it if it is missing.
  ///
  /// It lives in `$XDG_DATA_HOME/app-groups/<group>`, by default
  /// `~/.local/share/app-groups/<group>`.
  ///
  /// - Parameter group: An App Group identifier such as `group.com.example.cinema`; any string.
  /// - Throws: `AppGroupError`: `containerUnsafe` if its owner or mode lets others in,
  ///   `formatTooNew`, or an error of the file system.
  public convenience init(group: String) throws {
    let path = try ContainerLocation.path(forGroup: group)
    try ContainerLocation.create(path)
    try self.init(path: path, group: group, access: .owner)
  }

  /// Opens any directory as a container.
  ///
  /// - Parameters:
  ///   - url: A directory of this user with mode 0700; an empty directory becomes a container.
  ///   - access: `.group` for a directory that the members of its Unix group share (mode 2770).
  /// - Throws: `AppGroupError`: `containerMissing`, `containerUnsafe` (also for a symbolic link),
  ///   `formatTooNew`, or an error of the file system.
  public convenience init(url: URL, access: ContainerAccess = .owner) throws {
    try self.init(path: url.path, group: nil, access: access)
  }

  package init(path: String, group: String? = nil, access: ContainerAccess = .owner) throws {
    let absolute = try Self.absolute(path)
    root = try ContainerRoot(path: absolute, access: access)
    url = URL(filePath: absolute, directoryHint: .isDirectory)
    groupIdentifier = group
    try ContainerFormat.establish(in: root, group: group)
  }

  // Resolved once, because the program may change its directory later.
  package static func absolute(_ path: String) throws -> String {
    let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard !path.hasPrefix("/") else { return path }
    let current = try reporting("find the current directory", path: ".") {
      try linkTarget("/proc/self/cwd")
    }
    return path == "." ? current : current + "/" + path
  }

  package func identifiers(of kind: NameKind) throws -> [String] {
    let path = root.path + "/" + kind.path
    return try reporting("list the container", path: path) {
      let handle = try root.handle()
      guard let entries = try Self.entries(kind.path, at: handle.descriptor.rawValue) else {
        return []
      }
      return try entries.compactMap { entry in
        switch EncodedName.decode(entry.name.bytes) {
        case .identifier(let identifier): return identifier
        case .foreign: return nil
        case .long:
          return try NamedDirectory.listedIdentifier(
            entry.name.text, of: kind, at: handle.descriptor.rawValue)
        }
      }
    }
  }

  package static func entries(
    _ path: String, at directory: Int32
  ) throws(Errno) -> [FileDescriptor.Entry]? {
    try ifPresent(
      FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory]).remainingEntries())
  }
}
