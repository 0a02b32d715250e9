import Foundation
import Wormhole
import WormholePeers

/// Where a file lies while the delegate has it: `<container>/own/inbox/<peer>/<transfer>/<name>`.
///
/// It is a hard link of the file that the queue still has: the delegate sees the name that the
/// sender gave it, and may move the link away to keep it. If this process ends during the method,
/// the queue delivers the file again. The next activation of its side removes abandoned files.
struct Inbox {
  private let directory: URL

  init(_ place: SessionPlace) {
    directory = place.container.url
      .appending(path: "own/inbox", directoryHint: .isDirectory)
      .appending(path: EncodedName(place.peer.name).component, directoryHint: .isDirectory)
  }

  func put(_ file: PeerFile) throws -> URL {
    let home = home(of: file)
    try FileManager.default.createDirectory(
      at: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let name = file.name.isEmpty ? "file" : file.name
    let url = home.appending(path: name, directoryHint: .notDirectory)
    try FileManager.default.linkItem(at: file.url, to: url)
    return url
  }

  func remove(_ file: PeerFile) {
    Diagnostics.reporting { try FileManager.default.removeItem(at: home(of: file)) }
  }

  func clear() throws {
    do {
      try FileManager.default.removeItem(at: directory)
    } catch CocoaError.fileNoSuchFile {
      // Nothing was left behind, which is the ordinary case.
      return
    }
  }

  private func home(of file: PeerFile) -> URL {
    directory.appending(path: EncodedName(file.id).component, directoryHint: .isDirectory)
  }
}
