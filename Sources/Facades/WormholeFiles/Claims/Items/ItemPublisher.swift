package import Wormhole
import WormholeSystem

/// The process that published a file through a coordinator: an extended attribute of the file, set
/// on the private copy before that replaces the item. So there is no second file, and the attribute
/// exists exactly when the content does.
///
/// ```
/// 1 byte    the version of this layout: 2
/// 8 bytes   the inode of the content that it speaks of
/// 8 bytes   the size of that content
/// 8 bytes   the time of its last change in nanoseconds since 1970
/// 4 bytes   the number of the process
/// 8 bytes   the time of publication in nanoseconds since 1970
/// n bytes   the name of its program, in UTF-8, at most 15
/// ```
/// All numbers have their most significant byte first. A program that changes the file without a
/// coordinator changes its size or time, and a copy has another inode: then no process is named.
/// The same holds for directories, and for file systems without extended attributes.
///
/// It has at most 52 bytes, because beside its name no more fit into an inode of ext4. A longer one
/// takes a block of the disk for each file, which is allocated and freed with each publication.
package enum ItemPublisher {
  static let attribute = FileName("user.wormhole.publisher")

  private static let version: UInt8 = 2
  private static let maximumProgramBytes = 15

  private enum Place {
    static let process = 25
    static let time = 29
    static let program = 37
  }

  /// Names this process as the publisher of a copy that it is about to publish.
  ///
  /// - Parameter status: The status of the copy.
  /// - Complexity: One system call.
  static func mark(_ path: String, _ status: FileStatus) {
    guard status.kind == .regular else { return }
    var value = identity(of: status)
    value.append(number: ProcessIdentity.current.processID)
    value.append(number: PublicationRecord.now)
    value += ProcessIdentity.program.utf8.prefix(maximumProgramBytes)
    do throws(Errno) {
      try setAttribute(attribute, value, of: path)
    } catch {
      // It cannot have such an attribute, or this user may not write to it: no process is named.
      return
    }
  }

  /// Returns the process that published the current content; nil if it is unknown.
  ///
  /// - Complexity: Four system calls.
  package static func of(_ path: String) -> Publisher? {
    do throws(Errno) {
      let file = try FileDescriptor.open(path, [.readOnly, .noFollow, .nonBlocking])
      let value = try file.attribute(attribute)
      guard value.starts(with: identity(of: try file.status())), value.count > Place.program,
        let process = Int32(exactly: value.number(in: Place.process..<Place.time)), process > 0,
        let program = String(validating: value[Place.program...], as: UTF8.self)
      else { return nil }
      return Publisher(
        processID: process, program: program, peer: nil,
        nanosecondsSince1970: Int64(bitPattern: value.number(in: Place.time..<Place.program)))
    } catch {
      // The attribute or the file does not exist.
      return nil
    }
  }

  private static func identity(of status: FileStatus) -> [UInt8] {
    var bytes = [version]
    bytes.append(number: status.inode)
    bytes.append(number: status.size)
    bytes.append(number: status.modifiedSeconds &* 1_000_000_000 &+ status.modifiedNanoseconds)
    return bytes
  }
}

extension [UInt8] {
  fileprivate func number(in place: Range<Int>) -> UInt64 {
    self[place].reduce(0) { $0 << 8 | UInt64($1) }
  }
}
