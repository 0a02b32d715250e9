import FoundationEssentials
import WormholeSystem

/// A file that is to be sent, open.
///
/// If the path ends in a symbolic link, its target is copied, as by other programs that are given a
/// path. A link that is to be moved is refused, because a rename would hand over the link. Only a
/// regular file is accepted, and opening never waits: a FIFO is opened without its other end.
struct SourceFile: ~Copyable {
  let path: String
  let status: FileStatus
  let descriptor: FileDescriptor

  /// - Throws: `PeerError`: `fileAccess`.
  init(_ path: String, isMoved: Bool, to peer: String) throws(PeerError) {
    let file = try Self.open(path, isMoved: isMoved, to: peer)
    let status: FileStatus
    do throws(Errno) {
      status = try file.status()
    } catch {
      throw Self.refused(path, to: peer, Self.reason(error, isMoved: isMoved))
    }
    guard status.kind == .regular else {
      let kind = status.kind == .directory ? "directory" : "\(status.kind)"
      throw Self.refused(
        path, to: peer, "it is a \(kind), not a regular file",
        remedy: status.kind == .directory ? "send an archive of it, or its files one by one" : nil)
    }
    self.path = path
    self.status = status
    descriptor = file
  }

  private static func open(
    _ path: String, isMoved: Bool, to peer: String
  ) throws(PeerError) -> FileDescriptor {
    do throws(Errno) {
      let options: OpenOptions = [.readOnly, .nonBlocking]
      return try FileDescriptor.open(path, isMoved ? options.union(.noFollow) : options)
    } catch {
      throw refused(path, to: peer, reason(error, isMoved: isMoved))
    }
  }

  private static func reason(_ error: Errno, isMoved: Bool) -> String {
    switch error {
    case .tooManyLinks where isMoved:
      "it is a symbolic link, and moving it would hand over the link and not the file"
    // open(2): a FIFO or device without its other end, a socket.
    case .noSuchDevice: "it is not a regular file"
    default: "\(error)"
    }
  }

  static func refused(
    _ path: String, to peer: String, _ reason: String, remedy: String? = nil
  ) -> PeerError {
    PeerError(
      .fileAccess, "send \(path) to \"\(peer)\"", peer: peer, reason: reason, remedy: remedy)
  }

  /// The absolute path of a URL.
  static func path(of url: URL, to peer: String) throws(PeerError) -> String {
    guard url.isFileURL else {
      throw refused(url.absoluteString, to: peer, "it is not the URL of a file")
    }
    let path = url.path
    guard !path.utf8.contains(0) else {
      throw refused(path, to: peer, "a path has no zero byte in it")
    }
    guard !path.hasPrefix("/") else { return path }
    do throws(Errno) {
      return try linkTarget("/proc/self/cwd") + "/" + path
    } catch {
      throw refused(path, to: peer, "the current directory cannot be found: \(error)")
    }
  }
}
