package import AppGroup
import SystemCalls

/// The process that published a file through a coordinator: an extended attribute of the file, set on the
/// private copy before that takes the item's place. So there is no second file, and it is there exactly
/// when the content is.
///
/// The attribute holds the inode, the size and the time of the content that it speaks of, and then a
/// `PublicationRecord`. A program that changes the file without a coordinator changes its size or time,
/// and a copy has another inode: then nobody is named. The same holds for directories, and for file
/// systems without extended attributes.
package enum ItemPublisher {
  private static let attribute = FileName("user.wormhole.publisher")

  /// Names this process as the publisher of a copy that it is about to publish.
  ///
  /// - Parameter status: The status of the copy.
  /// - Complexity: Three system calls.
  static func mark(_ name: String, _ status: FileStatus, at directory: Int32) {
    guard status.kind == .regular else { return }
    let record = PublicationRecord(peer: nil, base: .unknown, expiry: nil)
    do throws(Errno) {
      let file = try FileDescriptor.open(name, at: directory, [.readOnly, .noFollow, .nonBlocking])
      try file.setAttribute(attribute, identity(of: status) + record.bytes)
    } catch {
      // It cannot have such an attribute, or this user may not write to it: nobody is named.
      return
    }
  }

  /// Returns the process that published the content that is there now; nil if it is not told.
  ///
  /// - Complexity: Four system calls.
  package static func of(_ path: String) -> Publisher? {
    do throws(Errno) {
      let file = try FileDescriptor.open(path, [.readOnly, .noFollow, .nonBlocking])
      let value = try file.attribute(attribute)
      let identity = identity(of: try file.status())
      guard value.starts(with: identity) else { return nil }
      return PublicationRecord(Array(value.dropFirst(identity.count)))?.publisher
    } catch {
      // There is no such attribute, or no such file any more.
      return nil
    }
  }

  private static func identity(of status: FileStatus) -> [UInt8] {
    var bytes: [UInt8] = []
    for number in [
      Int64(bitPattern: status.inode), status.size, status.modifiedSeconds,
      status.modifiedNanoseconds,
    ] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }
}
