import Wormhole
import WormholePropertyLists
import WormholeSystem

/// A value was not read, because other users may have written it.
struct Exposure: Error, CustomStringConvertible {
  /// "PATH belongs to user 0 and has mode 664".
  let description: String

  /// - Parameter path: the file or directory through which other users may write.
  static func check(_ status: FileStatus, path: String) throws(Exposure) {
    guard status.owner != Program.effectiveUser || status.permissions & 0o022 != 0 else { return }
    let mode = String(status.permissions, radix: 8)
    throw Exposure(description: "\(path) belongs to user \(status.owner) and has mode \(mode)")
  }
}

extension Value {
  /// Returns the value for a reader that acts on its content, if only this user can have written it.
  ///
  /// The check covers the very file that is read, and every directory from the container down to
  /// it. An access control list that lets others write shows in the group's bits (acl(5)), so it is
  /// covered.
  ///
  /// - Returns: Nil if the value was never written, or was removed.
  /// - Throws: As `read`, and `Exposure`.
  func privateContent(limits: PropertyListLimits = .standard) throws -> PropertyListValue? {
    try reporting("read the value", path: path) {
      guard let place = try directory.open() else { return nil }
      let handle = try container.root.handle()
      try Exposure.check(handle.descriptor.status(), path: container.root.path)
      for path in directory.kind.chain {
        let status = try fileStatus(path, at: handle.descriptor.rawValue)
        try Exposure.check(status, path: container.root.path + "/" + path)
      }
      try Exposure.check(place.status(), path: directory.path)
      guard let bytes = try privateBytes(at: place, limits) else { return nil }
      do throws(PropertyListError) {
        return try PropertyListValue(bytes: bytes, limits: limits)
      } catch {
        throw AppGroupError.damaged(path, error)
      }
    }
  }

  private func privateBytes(
    at place: borrowing FileDescriptor, _ limits: PropertyListLimits
  ) throws -> [UInt8]? {
    let bytes = try privateBytes(fileName, path, at: place, limits)
    guard let bytes, KeptVersion.isMissing(bytes) else { return bytes }
    guard
      let lease = try ifPresent(
        FileDescriptor.openBeneath(LeaseSite.lease, at: place.rawValue, [.readOnly, .directory])),
      let standIn = try KeptVersion.standIn(in: lease)
    else {
      return try privateBytes(fileName, path, at: place, limits)
    }
    // The copy that is read after a loss of power is checked like the value, with its directory. The
    // first publication may just have removed it; then the value is whole.
    let leasePath = directory.path + "/" + LeaseSite.lease
    try Exposure.check(lease.status(), path: leasePath)
    return try privateBytes(standIn, leasePath + "/" + standIn, at: lease, limits)
      ?? privateBytes(fileName, path, at: place, limits)
  }

  private func privateBytes(
    _ name: String, _ path: String, at place: borrowing FileDescriptor, _ limits: PropertyListLimits
  ) throws -> [UInt8]? {
    guard
      let file = try ifPresent(
        FileDescriptor.openBeneath(name, at: place.rawValue, [.readOnly, .nonBlocking]))
    else { return nil }
    let status = try file.status()
    guard status.kind == .regular else { throw Errno.invalidArgument }
    try Exposure.check(status, path: path)
    return try file.readToEnd(
      expectedBytes: Int(status.size), maximumBytes: limits.maximumBytes)
  }
}
