package import Dispatch
import WormholeSystem

/// A file that any program may have written, and may write at any time.
package enum ForeignFile {
  /// Returns the content of a regular file; follows a link to one.
  ///
  /// - Parameter maximumBytes: The largest accepted size.
  /// - Throws: `WormholeError`: `tooLarge`, `notAValue` for anything but a regular file (a FIFO
  ///   would block forever, a device may never end), or an error of the file system.
  package static func read(_ path: String, maximumBytes: Int) throws -> [UInt8] {
    try content(path, maximumBytes: maximumBytes) {
      try FileDescriptor.open(path, [.readOnly, .nonBlocking])
    }.bytes
  }

  /// Returns the content of a regular file, with its version.
  ///
  /// The version is older than the content if a program writes the file meanwhile, never newer.
  ///
  /// - Parameters:
  ///   - path: For messages.
  ///   - open: Opens the file without waiting for a writer.
  /// - Throws: As `read`.
  static func content(
    _ path: String, maximumBytes: Int, _ open: () throws -> FileDescriptor
  ) throws -> (bytes: [UInt8], version: Version) {
    try reporting(action, path: path) {
      let file = try open()
      let version = try version(of: file.status(), path)
      do throws(Errno) {
        let bytes = try file.readToEnd(
          expectedBytes: Int(version.size), maximumBytes: maximumBytes)
        return (bytes, version)
      } catch {
        guard error == .fileTooLarge else { throw error }
        throw WormholeError(
          .tooLarge, action, path: path,
          reason: "it has more bytes than the limit of \(maximumBytes)")
      }
    }
  }

  /// Returns the version of a regular file; nil if there is no file.
  ///
  /// - Parameters:
  ///   - place: Its path from a directory.
  ///   - path: Its whole path, for messages.
  /// - Throws: `WormholeError`: `notAValue` for anything else, even a link, or an error of the file
  ///   system.
  /// - Complexity: One system call.
  static func version(_ place: String, at directory: Int32, path: String) throws -> Version? {
    try reporting(action, path: path) {
      try ifPresent(fileStatus(place, at: directory)).map { try version(of: $0, path) }
    }
  }

  private static func version(of status: FileStatus, _ path: String) throws -> Version {
    guard status.kind == .regular else {
      throw WormholeError(
        .notAValue, action, path: path, reason: "it is not a regular file", remedy: "name a file")
    }
    return Version(status)
  }

  /// Writes a new file.
  ///
  /// - Returns: Its version, which a rename does not change.
  package static func make(
    _ path: String, _ bytes: [UInt8], _ access: ContainerAccess
  ) throws -> Version {
    try reporting("write the file", path: path) {
      let file = try access.createFile(path, at: Directory.current)
      try file.writeAll(bytes)
      return Version(try file.status())
    }
  }

  /// Calls a handler whenever a program has written, replaced or removed a file, until the
  /// observation is cancelled or released.
  ///
  /// - Parameters:
  ///   - directory: Need not exist.
  ///   - name: The file in it.
  ///   - queue: The queue on which the handler is called, one call at a time.
  package static func observe(
    _ name: String, in directory: ContainerDirectory, on queue: DispatchQueue,
    _ handler: @escaping @Sendable () -> Void
  ) -> ObservationToken {
    let delivery = ChangeDelivery<Version?>(initial: nil, on: queue) { last in
      do {
        let now = try directory.version(of: name)
        return (now, now == last ? nil : handler)
      } catch WormholeError.Code.containerMissing {
        // It is unknown; the next look compares with the same version.
        return (last, nil)
      } catch {
        // The reader of the file gets the error.
        return (nil, last == nil ? nil : handler)
      }
    }
    let watched = FileName(name)
    // Not the creation of a name: its content follows.
    let events = WatchEvents.content.subtracting(.created)
    let watch = ChangeMonitor.shared.watch(
      path: directory.path, parents: [], way: directory.path, events, prepare: {},
      hear: { [weak delivery] news in
        if news.isEverything || news.names[watched] != nil { delivery?.signal() }
      })
    // No version, whatever the reason.
    delivery.open(known: try? directory.version(of: name))
    return ObservationToken(watch: watch, delivery: delivery)
  }

  package static let action = "read the file"
}
