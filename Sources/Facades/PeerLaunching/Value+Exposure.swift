import AppGroup
import PropertyLists
import SystemCalls

/// A file or directory through which other users may change a value.
struct Exposure: Sendable, Hashable {
  /// The file or directory.
  let path: String
  /// The owner's number.
  let owner: UInt32
  /// The permission bits.
  let permissions: UInt32

  init?(_ status: FileStatus, path: String) {
    guard status.owner != Program.effectiveUser || status.permissions & 0o022 != 0 else {
      return nil
    }
    self.path = path
    owner = status.owner
    permissions = status.permissions
  }
}

extension Exposure: CustomStringConvertible {
  /// "PATH belongs to user 0 and has mode 664".
  var description: String {
    "\(path) belongs to user \(owner) and has mode \(String(permissions, radix: 8))"
  }
}

/// A value for a reader that acts on its content.
enum PrivateContent: Sendable {
  /// The value was never written, or was removed.
  case absent
  case content(PropertyListValue)
  /// Other users may have written the value, so its content was not read.
  case exposed(Exposure)
}

extension Value {
  /// Returns the value if only this user can have written it.
  ///
  /// The check covers the very file that is read, and every directory from the container down to
  /// it. An access control list that lets others write shows in the group's bits (acl(5)), so it is
  /// covered.
  ///
  /// - Throws: As `read`, except for another user's file, which is `exposed`.
  func privateContent(limits: PropertyListLimits = .standard) throws -> PrivateContent {
    try reporting("read the value", path: path) {
      guard let place = try directory.open() else { return .absent }
      let handle = try container.root.handle()
      var above = [(try handle.descriptor.status(), container.root.path)]
      for path in directory.kind.chain {
        let status = try fileStatus(path, at: handle.descriptor.rawValue)
        above.append((status, container.root.path + "/" + path))
      }
      above.append((try place.status(), directory.path))
      for (status, path) in above {
        if let exposure = Exposure(status, path: path) { return .exposed(exposure) }
      }
      return try privateContent(at: place, limits)
    }
  }

  private func privateContent(
    at place: borrowing FileDescriptor, _ limits: PropertyListLimits
  ) throws -> PrivateContent {
    guard var found = try ifPresent(privateBytes(fileName, path, at: place, limits))
    else { return .absent }
    if case .content(let bytes) = found, KeptVersion.isMissing(bytes) {
      // Without one, the first publication after a loss of power has perhaps removed it just now.
      let kept = try privateStandIn(at: place, limits)
      guard let other = try kept ?? ifPresent(privateBytes(fileName, path, at: place, limits))
      else { return .absent }
      found = other
    }
    switch found {
    case .exposed(let exposure): return .exposed(exposure)
    case .content(let bytes):
      do throws(PropertyListError) {
        return .content(try PropertyListValue(bytes: bytes, limits: limits))
      } catch {
        throw AppGroupError.damaged(path, error)
      }
    }
  }

  private enum PrivateBytes {
    case content([UInt8])
    case exposed(Exposure)
  }

  private func privateBytes(
    _ name: String, _ path: String, at place: borrowing FileDescriptor, _ limits: PropertyListLimits
  ) throws(Errno) -> PrivateBytes {
    let file = try FileDescriptor.openBeneath(name, at: place.rawValue, [.readOnly, .nonBlocking])
    let status = try file.status()
    if status.kind != .regular { throw .invalidArgument }
    if let exposure = Exposure(status, path: path) { return .exposed(exposure) }
    return .content(
      try file.readToEnd(expectedBytes: Int(status.size), maximumBytes: limits.maximumBytes))
  }

  // The copy that is read after a loss of power is checked like the value, with its parent
  // directory.
  private func privateStandIn(
    at place: borrowing FileDescriptor, _ limits: PropertyListLimits
  ) throws(Errno) -> PrivateBytes? {
    do throws(Errno) {
      let lease = try FileDescriptor.openBeneath(
        LeaseSite.lease, at: place.rawValue, [.readOnly, .directory])
      guard let name = try KeptVersion.standIn(in: lease) else { return nil }
      let path = directory.path + "/" + LeaseSite.lease
      if let exposure = Exposure(try lease.status(), path: path) { return .exposed(exposure) }
      return try privateBytes(name, path + "/" + name, at: lease, limits)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }
}
