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
    try makePrivateDirectory(at: home)
    let url = home.appending(path: file.name, directoryHint: .notDirectory)
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

/// A directory of the phone for each watch: `<container>/own/watches/<name>`.
///
/// The phone makes it when its app first asks for it, and deletes it at an activation after the watch
/// was unpaired or its app removed, as Apple's does "upon next launch".
enum WatchDirectory {
  static func url(of watch: String, in place: SessionPlace) throws -> URL {
    let url = home(place).appending(
      path: EncodedName(watch).component, directoryHint: .isDirectory)
    try makePrivateDirectory(at: url)
    return url
  }

  /// Deletes the directories of watches that were unpaired or have no app.
  static func sweep(_ place: SessionPlace) throws {
    let home = home(place)
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: home.path)
    } catch CocoaError.fileReadNoSuchFile {
      return
    }
    let kept = try place.phonePairing.state().companions.filter(\.isAppInstalled)
      .map { EncodedName($0.name).component }
    for name in names where !kept.contains(name) {
      try FileManager.default.removeItem(at: home.appending(path: name))
    }
  }

  private static func home(_ place: SessionPlace) -> URL {
    place.container.url.appending(path: "own/watches", directoryHint: .isDirectory)
  }
}

private func makePrivateDirectory(at url: URL) throws {
  try FileManager.default.createDirectory(
    at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
}
