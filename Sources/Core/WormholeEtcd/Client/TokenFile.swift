import Wormhole
import WormholeSystem

/// The last token of a user whose password is in a file, kept for the next process: etcd takes a
/// tenth of a second to check a password (bcrypt).
///
/// `$XDG_STATE_HOME/wormhole/tokens/<digest of the addresses and the user>`, in a directory of this
/// user alone, with mode 0600: a token is as good as the password for five minutes after its last
/// use. Its first line identifies the password's file as it was; a changed password voids it.
struct TokenFile: Sendable {
  let path: String
  /// The device, the inode, the size and the time of the password's file.
  private let source: String

  private static let maximumBytes = 4_096

  /// - Parameters:
  ///   - status: The status of the password's file.
  ///   - directory: The directory of the state of programs.
  init(of user: String, at endpoints: [String], password status: FileStatus, in directory: String) {
    let identity = Array("\(endpoints.sorted().joined(separator: ",")) \(user)".utf8)
    path = "\(directory)/wormhole/tokens/\(SHA256.hexDigest(of: identity).prefix(32))"
    source =
      "\(status.device) \(status.inode) \(status.size) \(status.modifiedSeconds)"
      + " \(status.modifiedNanoseconds)"
  }

  /// Returns the last token; nil if there is none, or if it belongs to another password.
  func read() -> String? {
    do {
      let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking, .noFollow])
      let status = try file.status()
      guard status.kind == .regular, status.owner == Program.effectiveUser,
        status.permissions & 0o077 == 0
      else { return nil }
      let bytes = try file.readToEnd(expectedBytes: 256, maximumBytes: Self.maximumBytes)
      let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
      // It goes into a header.
      guard lines.count == 2, lines[0] == source,
        lines[1].utf8.allSatisfy({ $0 > 32 && $0 < 127 })
      else { return nil }
      return lines[1]
    } catch {
      // Then etcd checks the password, as without a kept token.
      return nil
    }
  }

  func write(_ token: String) {
    let new = "\(path).\(Nonce.next())"
    do {
      defer {
        // After the rename it does not exist; one that is left is never read.
        try? removeFile(new)
      }
      try ContainerLocation.create(String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]))
      try FileDescriptor.open(new, [.writeOnly, .create, .exclusive], mode: 0o600)
        .writeAll(Array("\(source)\n\(token)\n".utf8))
      try rename(new, at: Directory.current, to: path, at: Directory.current)
    } catch {
      // Then the next process proves the password again.
      return
    }
  }
}
