import FoundationEssentials
import WormholePropertyLists
package import WormholeSystem

/// `container.plist`: the version of the container's on-disk format, its group, and the time of its
/// creation. The first process writes it once, as a whole; it never changes.
///
/// A reader of another major version is refused, because it would have to guess.
package enum ContainerFormat {
  package static let fileName = "container.plist"
  /// The directory of all mailboxes: messages to processes while they live.
  package static let mailboxes = "mailboxes"
  /// The names of the container's own entries; all others are the user's.
  package static let ownEntries = Set(
    [fileName, mailboxes, Quarantine.directory, NameKind.own] + NameKind.users.map(\.path))
  static let majorVersion: Int64 = 2

  package static func isPresent(at directory: Int32) throws(Errno) -> Bool {
    try exists(fileName, at: directory)
  }

  /// Checks the container's version, and writes nothing.
  ///
  /// Without the file, one of the container's own directories shows that it is a container of this
  /// format, as a writer assumes: otherwise a reader would take a lost file for an empty container.
  ///
  /// - Returns: False for a directory that is not a container yet.
  static func isFound(in root: ContainerRoot) throws -> Bool {
    let handle = try root.handle()
    return try reporting("read the container's version", path: root.path + "/" + fileName) {
      try check(handle, path: root.path + "/" + fileName)
        || ownEntries.contains {
          try ifPresent(fileStatus($0, at: handle.descriptor.rawValue))?.kind == .directory
        }
    }
  }

  /// Checks the container's version, or writes it if this is a new container.
  static func establish(in root: ContainerRoot, group: String?) throws {
    let handle = try root.handle()
    let path = root.path + "/" + fileName
    try reporting("write the container's version", path: path) {
      if try check(handle, path: path) { return }
      try write(in: root, handle, group: group)
      _ = try check(handle, path: path)
    }
  }

  /// - Returns: False if there is no such file yet.
  private static func check(_ handle: ContainerRoot.Handle, path: String) throws -> Bool {
    guard let bytes = try read(handle, path: path) else { return false }
    let content: PropertyListValue
    do {
      content = try PropertyListValue(bytes: bytes)
    } catch {
      throw unreadable(path, error.description)
    }
    guard let version = content["formatVersion"]?.int64Value, version >= majorVersion else {
      throw unreadable(path, "it has no formatVersion of \(majorVersion) or more")
    }
    guard version == majorVersion else {
      throw WormholeError(
        .formatTooNew, "open the container", path: path,
        reason: "its format version is \(version), and this program knows \(majorVersion)",
        remedy: "use a newer version of this program")
    }
    return true
  }

  private static func read(_ handle: ContainerRoot.Handle, path: String) throws -> [UInt8]? {
    do {
      let file = try FileDescriptor.openBeneath(
        fileName, at: handle.descriptor.rawValue, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular else { throw unreadable(path, "it is not a regular file") }
      return try file.readToEnd(expectedBytes: Int(status.size), maximumBytes: 65_536)
    } catch let error as Errno where error == .noSuchFile {
      return nil
    } catch let error as Errno where error == .fileTooLarge {
      throw unreadable(path, "it has more than 64 KiB")
    }
  }

  private static func unreadable(_ path: String, _ reason: String) -> WormholeError {
    WormholeError(
      .damaged, "open the container", path: path, reason: reason,
      remedy: "unless a newer version of this package uses the container, remove the file: the "
        + "next change writes it again, with format \(majorVersion), and everything else stays"
    )
  }

  private static func write(
    in root: ContainerRoot, _ handle: ContainerRoot.Handle, group: String?
  ) throws(Errno) {
    var content: PropertyListValue = [
      "formatVersion": .integer(majorVersion), "created": .now,
    ]
    if let group { content["group"] = .string(group) }
    let directory = handle.descriptor.rawValue
    let staged = ".container-\(Nonce.next()).plist"
    let file = try root.access.createFile(staged, at: directory)
    do throws(Errno) {
      try file.writeAll(content.bytesForFormatFile)
      try file.synchronize()
      try publish(staged, at: directory)
      try handle.descriptor.synchronize()
    } catch {
      // The file is in place already; otherwise, the cause of this failure blocks the rest, too.
      try? removeFile(staged, at: directory)
      throw error
    }
  }

  // A second process finds the first one's file, and both wrote the same.
  private static func publish(_ staged: String, at directory: Int32) throws(Errno) {
    do throws(Errno) {
      try rename(staged, at: directory, to: fileName, at: directory, .keep)
    } catch {
      guard error == .alreadyExists else {
        guard error == .unsupported else { throw error }
        return try rename(staged, at: directory, to: fileName, at: directory)
      }
      try removeFile(staged, at: directory)
    }
  }
}

extension PropertyListValue {
  // XML, so that `cat` shows what an unknown directory is; but XML has no way to write some characters of a
  // group's name, which may be any text.
  fileprivate var bytesForFormatFile: [UInt8] {
    do {
      return try Array(xmlData())
    } catch {
      do {
        return try binaryBytes()
      } catch {
        preconditionFailure("an integer, a date and a text are a property list: \(error)")
      }
    }
  }
}
