public import FoundationEssentials
import SystemCalls

/// One directory through which any number of processes share state.
///
/// Everything in it is property-list files: `ls`, Python's `plistlib` or a shell script can read it
/// and take part. No process can block another by being suspended or killed, no reader sees half a
/// file, no update is lost; `OnDiskFormat` in the documentation says how.
///
/// A container is cheap to open (five system calls), thread-safe, and one descriptor.
public final class SharedContainer: Sendable {
  /// The container's directory.
  public let url: URL
  /// The group's identifier, if the container was opened by it.
  public let groupIdentifier: String?

  let root: ContainerRoot
  let fault: LeaseFault?

  /// Opens the container of a group, and makes it where it is missing.
  ///
  /// It lives in `$XDG_DATA_HOME/app-groups/<group>`, by default `~/.local/share/app-groups/<group>`.
  ///
  /// - Parameter group: an App Group identifier such as `group.com.example.cinema`; any string.
  /// - Throws: `AppGroupError`: `containerUnsafe` when its owner or mode lets others in,
  ///   `formatTooNew`, or what the file system refuses.
  public convenience init(group: String) throws {
    let path = try ContainerLocation.path(forGroup: group)
    try ContainerLocation.create(path)
    try self.init(path: path, group: group, access: .owner, fault: nil)
  }

  /// Opens any directory as a container.
  ///
  /// - Parameters:
  ///   - url: a directory of this user, mode 0700; an empty one becomes a container.
  ///   - access: `.group` for one that the members of its Unix group share (mode 2770).
  /// - Throws: `AppGroupError`: `containerMissing`, `containerUnsafe` (also for a symbolic link),
  ///   `formatTooNew`, or what the file system refuses.
  public convenience init(url: URL, access: ContainerAccess = .owner) throws {
    try self.init(path: url.path, group: nil, access: access, fault: nil)
  }

  package init(
    path: String, group: String? = nil, access: ContainerAccess = .owner, fault: LeaseFault? = nil
  ) throws {
    let absolute = try Self.absolute(path)
    root = try ContainerRoot(path: absolute, access: access)
    url = URL(filePath: absolute, directoryHint: .isDirectory)
    groupIdentifier = group
    self.fault = fault
    try ContainerFormat.establish(in: root, group: group)
  }

  // Resolved once: the program may change its directory later.
  static func absolute(_ path: String) throws -> String {
    let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard !path.hasPrefix("/") else { return path }
    let current = try reporting("find the current directory", path: ".") {
      try linkTarget("/proc/self/cwd")
    }
    return path == "." ? current : current + "/" + path
  }

  /// The value of an identifier; nothing is touched before it is read or written.
  ///
  /// - Parameter identifier: any string, byte for byte; "/" and ".." are ordinary characters.
  public func value(_ identifier: String) -> Value {
    Value(container: self, identifier: identifier, kind: .value)
  }

  /// The notification of a name; nothing is touched before it is posted or observed.
  ///
  /// - Parameter name: any string, byte for byte.
  public func notification(_ name: String) -> Notification {
    Notification(container: self, name: name)
  }

  /// The identifiers of all values that have been written or observed, in no order.
  ///
  /// - Complexity: one look at the directory, and one file read for each identifier that is too
  ///   long for a file name.
  public func valueIdentifiers() throws -> [String] {
    try identifiers(of: .value)
  }

  /// The names of all notifications that have been posted or observed, in no order.
  public func notificationNames() throws -> [String] {
    try identifiers(of: .notification)
  }

  func identifiers(of kind: NameKind) throws -> [String] {
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

  static func entries(
    _ path: String, at directory: Int32
  ) throws(Errno) -> [FileDescriptor.Entry]? {
    do throws(Errno) {
      return try FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory]).entries()
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }
}
