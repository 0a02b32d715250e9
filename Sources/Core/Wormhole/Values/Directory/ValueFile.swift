package import FoundationEssentials
import WormholePropertyLists
import WormholeSystem

/// A value's file: how it is read.
package final class ValueFile: ValueStore {
  package let container: SharedContainer
  package let identifier: String
  let directory: NamedDirectory
  let name: String
  let relativePath: String
  let followUpMark = FollowUps.Mark()
  /// Nil for a long identifier, whose directory is verified at each change, and for a value that
  /// ends with its process.
  let keptLease: KeptLease?

  package init(container: SharedContainer, identifier: String, kind: NameKind) {
    self.container = container
    self.identifier = identifier
    directory = NamedDirectory(root: container.root, kind: kind, identifier: identifier)
    name = Self.name(of: kind.primitive)
    relativePath = directory.relativePath + "/" + name
    keptLease =
      directory.name.longIdentifier == nil && kind.outlivesProcesses
      ? container.root.keptLeases.lease(at: directory.relativePath) : nil
  }

  package var path: String { directory.path + "/" + name }

  package var file: ValueFile { self }

  // MARK: Reading

  package func snapshot(limits: PropertyListLimits) throws -> PlainSnapshot {
    let handle = try container.root.handle()
    let found = try settled(in: handle) { path in
      try ifThere(snapshot(at: handle.descriptor.rawValue, path, handle.status, limits: limits))
    }
    if let found { return found }
    let fresh = try container.root.refreshed(handle)
    return try fresh === handle
      ? PlainSnapshot(bytes: nil, version: nil, of: self) : snapshot(limits: limits)
  }

  /// Returns the current value if that takes a few calls that never wait for other processes, for
  /// the monitor's thread, which was notified of a change.
  ///
  /// - Returns: Nil if `snapshot` has to look, on another thread: for any error, for an absent or
  ///   large value, and for a transaction or an expiry.
  func promptSnapshot() -> PlainSnapshot? {
    let handle = container.root.lastHandle
    // The reason does not matter, because the other look finds it.
    let found = try? snapshot(
      at: handle.descriptor.rawValue, relativePath, handle.status, limits: Self.promptLimits)
    guard let found, !found.status.isMarked else { return nil }
    return found.snapshot
  }

  /// Reading this much takes less time than waking another thread.
  private static let promptLimits = PropertyListLimits(maximumBytes: 65_536)

  private func ifThere<Found>(_ look: @autoclosure () throws -> Found) throws -> Found? {
    do {
      return try look()
    } catch let error as Errno where error == .noSuchFile || error == .notDirectory {
      return nil
    }
  }

  /// The status of the value's directory; nil if there is none.
  func directoryStatus() throws -> FileStatus? {
    let handle = try container.root.handle()
    return try ifThere(fileStatus(directory.relativePath, at: handle.descriptor.rawValue))
  }

  package func version() throws -> Version? {
    let handle = try container.root.handle()
    let found = try ifThere(fileStatus(relativePath, at: handle.descriptor.rawValue))
    if let found, !found.isMarked { return Version(found) }
    do {
      return try snapshot(limits: .standard).version
    } catch let error as WormholeError {
      // It cannot be read, but it is still a publication.
      guard let found else { throw error }
      return Version(found)
    }
  }

  /// - Parameter isSecondLook: Whether a first look has found neither content nor a substitute.
  private func snapshot(
    at start: Int32, _ name: String, _ owner: FileStatus, limits: PropertyListLimits,
    isSecondLook: Bool = false
  ) throws -> (snapshot: PlainSnapshot, status: FileStatus) {
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
      return (try snapshot(of: kept.bytes, status, limits, standsInFrom: kept.published), status)
    }
    // A publication after the loss removes the kept version, perhaps just now.
    guard isSecondLook else {
      return try snapshot(at: start, name, owner, limits: limits, isSecondLook: true)
    }
    return (PlainSnapshot(bytes: bytes, version: Version(status), of: self), status)
  }

  private func snapshot(
    of file: consuming [UInt8], _ status: FileStatus, _ limits: PropertyListLimits,
    standsInFrom published: Date? = nil
  ) throws -> PlainSnapshot {
    var bytes = file
    let record = PublicationRecord.take(from: &bytes)
    guard bytes.count <= limits.maximumBytes else { throw tooLarge(bytes.count, limits) }
    return PlainSnapshot(
      bytes: bytes, version: Version(status), of: self, record: record, standsInFrom: published)
  }

  private func tooLarge(_ count: Int, _ limits: PropertyListLimits) -> WormholeError {
    WormholeError(
      .tooLarge, "read the value", path: path,
      reason: "it has \(count) bytes, more than the limit of \(limits.maximumBytes)",
      remedy: "raise the limit, or remove the file")
  }

  /// Returns the time of publication of the version that is kept in case the last one is lost; nil
  /// if it cannot be read.
  package func keptDate() throws -> Date? {
    let handle = try container.root.handle()
    guard let kept = try standIn(at: handle.descriptor.rawValue, handle.status, .standard) else {
      return nil
    }
    var bytes = kept.bytes
    _ = PublicationRecord.take(from: &bytes)
    do throws(PropertyListError) { _ = try PropertyListValue(bytes: bytes) } catch { return nil }
    return kept.published
  }

  /// Returns the copy that is kept in case the last publication is lost before it is on the disk.
  private func standIn(
    at start: Int32, _ owner: FileStatus, _ limits: PropertyListLimits
  ) throws(Errno) -> (bytes: [UInt8], published: Date)? {
    var published = Date.distantPast
    do throws(Errno) {
      let lease = try FileDescriptor.openBeneath(
        directory.relativePath + "/" + LeaseSite.lease, at: start, [.readOnly, .directory])
      guard let name = try KeptVersion.standIn(in: lease) else { return nil }
      let bytes = try FileDescriptor.readBeneath(
        name, at: lease.rawValue, maximumBytes: PublishedContent.largest(limits.maximumBytes)
      ) {
        published = $0.modified
        return container.root.access.trusts($0, in: owner)
      }
      // A program that emptied the value in place has emptied its second name, too.
      return KeptVersion.isMissing(bytes) ? nil : (bytes, published)
    } catch {
      switch error {
      // There is none, or a foreign entry in its place: the damage is reported.
      case .noSuchFile, .notDirectory, .tooManyLinks, .noSuchDevice, .fileTooLarge: return nil
      default: throw error
      }
    }
  }

  private func notAValue(_ reason: String) -> WormholeError {
    WormholeError(
      .notAValue, "read the value", path: path, reason: reason,
      remedy: "remove it: rm -r '\(path)'")
  }
}

extension DirectoryEngine: ValueEngine {
  package func value(
    _ identifier: String, _ kind: NameKind, in container: SharedContainer
  ) -> any ValueStore { ValueFile(container: container, identifier: identifier, kind: kind) }

  package func change<Result: Sendable>(
    _ update: ValuesUpdate<Result>
  ) -> sending any Waiting<Result> { TransactionWork(update).change() }
}
