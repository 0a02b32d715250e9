public import Containers
public import PropertyLists
import Publications
import SystemCalls

/// One property list, always whole: read without any lock, replaced or updated in one step,
/// observed.
///
/// Every method has a form that blocks its thread, and one for tasks that never blocks the
/// cooperative pool. A write takes the value's lease. If the lease is busy, the write waits until
/// its deadline. It takes the lease over from a process that is stopped (after 50 ms) or holds it
/// longer than its term. Its own lease may be taken over, too; it then begins again.
public struct Value: Sendable {
  /// The container of the value.
  public let container: SharedContainer
  /// The identifier of the value.
  public let identifier: String

  package let directory: NamedDirectory
  package let fileName: String
  /// The file's path relative to the container.
  let relativePath: String
  /// The peer whose publications these are; by default the only one that this process is.
  package var peer: String?

  /// The default wait of a write for the lease: 10 seconds.
  public static let standardWait: Duration = .seconds(10)

  /// The term of a change that says nothing else: 2 seconds. A holder that takes longer keeps the
  /// lease as long as nobody else wants it.
  public static let standardTerm = LeaseDeclaration.standardTerm

  /// The largest size of a value on disk: 64 MiB.
  public static let maximumBytes = PropertyListLimits.standard.maximumBytes

  /// The largest file of a value: with the record of its publication.
  package static let maximumFileBytes = PublishedContent.largest(maximumBytes)

  package init(container: SharedContainer, identifier: String, kind: NameKind) {
    self.container = container
    self.identifier = identifier
    directory = NamedDirectory(root: container.root, kind: kind, identifier: identifier)
    fileName =
      switch kind.primitive {
      case .value: LeaseSite.value
      case .notification: "state.plist"
      case .presence, .consumer: "exclusive.plist"
      case .log: "log.plist"
      case .queue: preconditionFailure("a queue has a lease, and no value")
      }
    relativePath = directory.relativePath + "/" + fileName
  }

  /// The path of the value's file, whether or not it exists.
  public var path: String { directory.path + "/" + fileName }

  // MARK: Reading

  /// Returns the current value; nil only if it was never written, was removed, or has expired.
  ///
  /// - Throws: `AppGroupError`: `damaged`, `notAValue` for anything but a regular file of this
  ///   user, `tooLarge`, or an error of the file system.
  /// - Complexity: Open, fstat, read, close; no lock.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(limits: PropertyListLimits = .standard) throws -> PropertyListValue? {
    try snapshot(limits: limits).propertyList(limits: limits)
  }

  /// Returns the current value as bytes, with its version.
  ///
  /// - Throws: As `read`, except for damage, which the snapshot reports when its content is used.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func snapshot(limits: PropertyListLimits = .standard) throws -> ValueSnapshot {
    try reporting("read the value", path: path) {
      let handle = try container.root.handle()
      let found = try settled(in: handle) { path in
        try ifThere(snapshot(at: handle.descriptor.rawValue, path, handle.status, limits))
      }
      if let found { return found }
      let fresh = try container.root.refreshed(handle)
      return try fresh === handle
        ? ValueSnapshot(bytes: nil, version: nil, path: path) : snapshot(limits: limits)
    }
  }

  private func ifThere<Found>(_ look: @autoclosure () throws -> Found) throws -> Found? {
    do {
      return try look()
    } catch let error as Errno where error == .noSuchFile || error == .notDirectory {
      return nil
    }
  }

  /// Returns the current publication; nil if the value was never written, was removed, or has expired.
  ///
  /// A caller that kept the content of a snapshot with the same version need not read the value
  /// again. There is one exception: if another program makes two changes in place within one tick
  /// of the kernel's clock, and to the same size, the second may keep the version of the first.
  ///
  /// - Throws: `AppGroupError` for an error of the file system.
  /// - Complexity: One system call; one more if there is no value. A value that expires is read.
  public func version() throws -> Version? {
    try reporting("look at the value", path: path) {
      let handle = try container.root.handle()
      let found = try ifThere(fileStatus(relativePath, at: handle.descriptor.rawValue))
      if let found, !found.isMarked { return Version(found) }
      do {
        return try snapshot().version
      } catch let error as AppGroupError {
        // It cannot be read, and is a publication all the same.
        guard let found else { throw error }
        return Version(found)
      }
    }
  }

  /// - Parameter isSecondLook: Whether a first look has found no content and nothing in its place.
  private func snapshot(
    at start: Int32, _ name: String, _ owner: FileStatus, _ limits: PropertyListLimits,
    isSecondLook: Bool = false
  ) throws -> (snapshot: ValueSnapshot, status: FileStatus) {
    let file = try FileDescriptor.openBeneath(name, at: start, [.readOnly, .nonBlocking])
    let status = try file.status()
    guard status.kind == .regular else { throw notAValue("it is not a regular file") }
    guard container.root.access.trusts(status, in: owner) else {
      throw notAValue("it belongs to user \(status.owner)")
    }
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try file.readToEnd(
        expectedBytes: Int(status.size), maximumBytes: PublishedContent.largest(limits.maximumBytes)
      )
    } catch {
      guard error == .fileTooLarge else { throw error }
      throw tooLarge(Int(status.size), limits)
    }
    guard KeptVersion.isMissing(bytes) else {
      return (try snapshot(of: bytes, status, limits), status)
    }
    if let kept = try standIn(at: start, owner, limits) {
      return (try snapshot(of: kept, status, limits), status)
    }
    // The first publication after a loss of power removes the kept version, perhaps just now.
    guard isSecondLook else {
      return try snapshot(at: start, name, owner, limits, isSecondLook: true)
    }
    return (ValueSnapshot(bytes: bytes, version: Version(status), path: path), status)
  }

  private func snapshot(
    of file: consuming [UInt8], _ status: FileStatus, _ limits: PropertyListLimits
  ) throws -> ValueSnapshot {
    var bytes = file
    let record = PublicationRecord.take(from: &bytes)
    guard bytes.count <= limits.maximumBytes else { throw tooLarge(bytes.count, limits) }
    return ValueSnapshot(bytes: bytes, version: Version(status), path: path, record: record)
  }

  private func tooLarge(_ count: Int, _ limits: PropertyListLimits) -> AppGroupError {
    AppGroupError(
      .tooLarge, "read the value", path: path,
      reason: "it has \(count) bytes, more than the limit of \(limits.maximumBytes)",
      remedy: "raise the limit, or remove the file")
  }

  /// Returns the copy that is kept in case the power fails before the last publication is on the
  /// disk.
  private func standIn(
    at start: Int32, _ owner: FileStatus, _ limits: PropertyListLimits
  ) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      let lease = try FileDescriptor.openBeneath(
        directory.relativePath + "/" + LeaseSite.lease, at: start, [.readOnly, .directory])
      guard let name = try KeptVersion.standIn(in: lease) else { return nil }
      return try FileDescriptor.readBeneath(
        name, at: lease.rawValue, maximumBytes: PublishedContent.largest(limits.maximumBytes)
      ) { container.root.access.trusts($0, in: owner) }
    } catch {
      switch error {
      // There is none, or a foreign entry in its place: the damage is reported.
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

extension SharedContainer {
  /// Returns the value of an identifier. No file is touched before it is read or written.
  ///
  /// - Parameter identifier: Any string, byte for byte; "/" and ".." are ordinary characters.
  public func value(_ identifier: String) -> Value {
    Value(container: self, identifier: identifier, kind: .value)
  }

  /// Returns the identifiers of all values that were ever written or observed, unordered.
  ///
  /// - Complexity: One directory listing, and one file read for each identifier that is too long
  ///   for a file name.
  public func valueIdentifiers() throws -> [String] {
    try identifiers(of: .value)
  }
}

extension OwnNames {
  /// Returns the value of a name of the package; no file is touched before it is read or written.
  package func value(_ name: String) -> Value {
    Value(container: container, identifier: name, kind: .ownValue)
  }
}
