public import PropertyLists
import SystemCalls

/// One property list, always whole: read without any lock, replaced or updated in one step, observed.
///
/// Every method has a form that blocks its thread and one for tasks, which blocks nothing of the
/// cooperative pool. A write takes the value's lease; one that finds it busy waits until its
/// deadline, and takes it away from a process that is stopped (after 50 ms) or holds it longer than
/// its term. Its own lease may be taken away, too; it then begins again.
public struct Value: Sendable {
  /// The container that the value is in.
  public let container: SharedContainer
  /// The identifier that was asked for.
  public let identifier: String

  let directory: NamedDirectory
  let fileName: String
  /// The file, relative to the container.
  let relativePath: String

  /// How long a write waits for the lease if its caller does not say: 10 seconds.
  public static let standardWait: Duration = .seconds(10)

  /// What a value may be at most, in bytes on disk: 64 MiB.
  public static let maximumBytes = PropertyListLimits.standard.maximumBytes

  init(container: SharedContainer, identifier: String, kind: NameKind) {
    self.container = container
    self.identifier = identifier
    directory = NamedDirectory(root: container.root, kind: kind, identifier: identifier)
    fileName =
      switch kind.primitive {
      case .value: "value.plist"
      case .notification: "state.plist"
      case .presence, .consumer: "exclusive.plist"
      // Only its lease is used, by those who cancel.
      case .queue: "cancelling.plist"
      }
    relativePath = directory.relativePath + "/" + fileName
  }

  /// Where the value's file is, or would be.
  public var path: String { directory.path + "/" + fileName }

  // MARK: Reading

  /// The value now; nil only when it was never written or was removed.
  ///
  /// - Throws: `AppGroupError`: `damaged`, `notAValue` for what is no regular file of this user,
  ///   `tooLarge`, or what the file system refuses.
  /// - Complexity: open, fstat, read, close; no lock.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(limits: PropertyListLimits = .standard) throws -> PropertyListValue? {
    try snapshot(limits: limits).propertyList(limits: limits)
  }

  /// The value now as bytes, with its version.
  ///
  /// - Throws: as `read`, but for damage, which is found when the snapshot is looked into.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func snapshot(limits: PropertyListLimits = .standard) throws -> Snapshot {
    try reporting("read the value", path: path) {
      let handle = try container.root.handle()
      do {
        return try snapshot(
          at: handle.descriptor.rawValue, relativePath, handle.status, limits)
      } catch let error as Errno where error == .noSuchFile || error == .notDirectory {
        let fresh = try container.root.refreshed(handle)
        guard fresh !== handle else { return Snapshot(bytes: nil, version: nil, path: path) }
        return try snapshot(limits: limits)
      }
    }
  }

  /// Which publication the value is now; nil when it was never written, or was removed.
  ///
  /// Whoever kept what a snapshot of the same version said need not read the value again. Only of
  /// two changes that another program made in place, within one tick of the kernel's clock and to
  /// the same size, the second may keep the version of the first.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: one system call; one more where there is no value.
  public func version() throws -> Version? {
    try reporting("look at the value", path: path) {
      let handle = try container.root.handle()
      do throws(Errno) {
        return Version(try fileStatus(relativePath, at: handle.descriptor.rawValue))
      } catch {
        guard error == .noSuchFile || error == .notDirectory else { throw error }
        let fresh = try container.root.refreshed(handle)
        return fresh === handle ? nil : try version()
      }
    }
  }

  private func snapshot(
    at start: Int32, _ name: String, _ owner: FileStatus, _ limits: PropertyListLimits
  ) throws -> Snapshot {
    let file = try FileDescriptor.openBeneath(name, at: start, [.readOnly, .nonBlocking])
    let status = try file.status()
    guard status.kind == .regular else { throw notAValue("it is not a regular file") }
    guard container.root.access.trusts(status, in: owner) else {
      throw notAValue("it belongs to user \(status.owner)")
    }
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try file.readToEnd(
        expectedBytes: Int(status.size), maximumBytes: limits.maximumBytes)
    } catch {
      guard error == .fileTooLarge else { throw error }
      throw AppGroupError(
        .tooLarge, "read the value", path: path,
        reason: "it has \(status.size) bytes, more than the limit of \(limits.maximumBytes)",
        remedy: "raise the limit, or remove the file")
    }
    if KeptVersion.isMissing(bytes), let kept = try standIn(at: start, owner, limits) {
      return Snapshot(bytes: kept, version: Version(status), path: path)
    }
    return Snapshot(bytes: bytes, version: Version(status), path: path)
  }

  /// What was kept for the case that the power fails before the last publication is on the disk.
  private func standIn(
    at start: Int32, _ owner: FileStatus, _ limits: PropertyListLimits
  ) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      let lease = try FileDescriptor.openBeneath(
        directory.relativePath + "/" + LeaseSite.lease, at: start, [.readOnly, .directory])
      guard let name = try KeptVersion.standIn(in: lease) else { return nil }
      let file = try FileDescriptor.openBeneath(
        name, at: lease.rawValue, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular, container.root.access.trusts(status, in: owner) else {
        return nil
      }
      return try file.readToEnd(
        expectedBytes: Int(status.size), maximumBytes: limits.maximumBytes)
    } catch {
      switch error {
      // There is none, or what somebody put in its place: the damage is told.
      case .noSuchFile, .notDirectory, .tooManyLinks, .noSuchDevice, .fileTooLarge: return nil
      default: throw error
      }
    }
  }

  private func notAValue(_ reason: String) -> AppGroupError {
    AppGroupError(
      .notAValue, "read the value", path: path, reason: reason,
      remedy: "remove it: rm -r '\(path)'")
  }
}
