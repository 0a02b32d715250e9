import FoundationEssentials
import PropertyLists
import SystemCalls

/// `container.plist`: which version of the on-disk format the container has, for which group it was
/// made, and when. Written once, whole, by whoever comes first; never changed.
///
/// A reader of another major version is refused rather than left to guess.
enum ContainerFormat {
  static let fileName = "container.plist"
  static let majorVersion: Int64 = 2

  /// Whether a directory is a container already.
  static func isPresent(at directory: Int32) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try fileStatus(fileName, at: directory)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
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

  /// - Returns: false when there is no such file yet.
  private static func check(_ handle: ContainerRoot.Handle, path: String) throws -> Bool {
    guard let bytes = try read(handle, path: path) else { return false }
    let content: PropertyListValue
    do {
      content = try PropertyListValue(bytes: bytes)
    } catch {
      throw unreadable(path, error.description)
    }
    guard let version = content["formatVersion"]?.int64Value else {
      throw unreadable(path, "it has no formatVersion")
    }
    guard version >= majorVersion else { throw older(version, path) }
    guard version == majorVersion else {
      throw AppGroupError(
        .formatTooNew, "open the container", path: path,
        reason: "its format version is \(version), and this program knows \(majorVersion)",
        remedy: "use a newer version of this program")
    }
    return true
  }

  /// In version 1 the package's own names lay among its users', where nothing told whose
  /// `values/@defaults` was: so it is refused, and not moved over by a guess.
  private static func older(_ version: Int64, _ path: String) -> AppGroupError {
    let container = String(path.dropLast(fileName.count + 1))
    return AppGroupError(
      .formatTooOld, "open the container", path: path,
      reason: "its format version is \(version), of before the first release, and this program "
        + "knows \(majorVersion)",
      remedy: "end its programs and move '\(container)' aside: a new container is made then, and "
        + "each message of the old one is a property list, values/NAME/value.plist")
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
    }
  }

  private static func unreadable(_ path: String, _ reason: String) -> AppGroupError {
    AppGroupError(
      .damaged, "open the container", path: path, reason: reason,
      remedy: "if the container is of format \(majorVersion), remove this file: it is written again"
    )
  }

  private static func write(
    in root: ContainerRoot, _ handle: ContainerRoot.Handle, group: String?
  ) throws(Errno) {
    var content: PropertyListValue = [
      "formatVersion": .integer(majorVersion), "created": .date(Date()),
    ]
    if let group { content["group"] = .string(group) }
    let directory = handle.descriptor.rawValue
    let staged = ".container-\(Nonce.next()).plist"
    let file = try root.createFile(staged, at: directory)
    do throws(Errno) {
      try file.writeAll(content.xmlForFormatFile)
      try file.synchronize()
      try publish(staged, at: directory)
      try handle.descriptor.synchronize()
    } catch {
      let cause = error
      do throws(Errno) { try removeFile(staged, at: directory) } catch {
        // In its place already; or what is in the way of that is in the way of the rest, too.
        throw cause
      }
      throw cause
    }
  }

  // Whoever comes second finds the first one's file: both wrote the same.
  private static func publish(_ staged: String, at directory: Int32) throws(Errno) {
    do throws(Errno) {
      try rename(staged, at: directory, to: fileName, at: directory, .keep)
    } catch {
      guard error == .alreadyExists else {
        guard error == .invalidArgument else { throw error }
        return try rename(staged, at: directory, to: fileName, at: directory)
      }
      try removeFile(staged, at: directory)
    }
  }
}

extension PropertyListValue {
  // XML, so that `cat` shows what a stranger's directory is.
  fileprivate var xmlForFormatFile: [UInt8] {
    do {
      return try Array(xmlData())
    } catch {
      preconditionFailure("an integer, a date and an encoded group name fit into XML: \(error)")
    }
  }
}
