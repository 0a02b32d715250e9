import Foundation
import Wormhole
import WormholePeers

/// A directory of the phone for each watch: `<container>/own/watches/<name>`.
///
/// The phone makes it when its app first asks for it, and deletes it at an activation after the watch
/// was unpaired or its app removed, as Apple's does "upon next launch".
enum WatchDirectory {
  static func url(of watch: String, in place: SessionPlace) throws -> URL {
    let url = home(place).appending(
      path: EncodedName(watch).component, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
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
