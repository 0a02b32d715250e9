import Foundation
import Wormhole
import WormholePeers

/// Where a file lies while the delegate has it: `<container>/own/inbox/<peer>/<transfer>/<name>`.
///
/// It is a hard link to the file that the queue still has: the delegate sees the sender's name for
/// it, and may move the link away to keep it. If this process ends during the method, the queue
/// delivers the file again. The next activation of its side removes abandoned files.
struct Inbox {
  private let container: SharedContainer
  private let name: String
  private let directory: ContainerDirectory

  private static let all = "own/inbox"

  init(_ setup: SessionSetup) {
    container = setup.container
    name = EncodedName(setup.peer.name).component
    directory = ContainerDirectory(Self.all + "/" + name, in: container)
  }

  func put(_ file: PeerFile) throws -> URL {
    let home = ContainerDirectory(
      Self.all + "/" + name + "/" + transfer(file), in: container)
    try home.make()
    try home.link(file.url.path, as: file.name)
    return URL(filePath: home.path + "/" + file.name, directoryHint: .notDirectory)
  }

  func remove(_ file: PeerFile) {
    Diagnostics.reporting { try directory.remove(transfer(file)) }
  }

  func clear() throws { try ContainerDirectory(Self.all, in: container).remove(name) }

  private func transfer(_ file: PeerFile) -> String { EncodedName(file.id).component }
}

/// The phone's directory for each watch: `<container>/own/watches/<name>`.
///
/// It is made when the phone's app first asks for it, and deleted at an activation after the watch
/// was unpaired or its app removed, as Apple's is "upon next launch".
enum WatchDirectory {
  private static let all = "own/watches"

  static func url(of watch: String, in setup: SessionSetup) throws -> URL {
    let directory = ContainerDirectory(
      all + "/" + EncodedName(watch).component, in: setup.container)
    try directory.make()
    return URL(filePath: directory.path, directoryHint: .isDirectory)
  }

  /// Deletes the directories of watches that were unpaired or have no app.
  static func sweep(_ setup: SessionSetup) throws {
    let directory = ContainerDirectory(all, in: setup.container)
    // Before the pairing: this leaves out the directory of a watch that is paired meanwhile.
    let names = try directory.names()
    guard !names.isEmpty else { return }
    let kept = try setup.phonePairing.state().companions.filter(\.isAppInstalled)
      .map { EncodedName($0.name).component }
    for name in names where !kept.contains(name) { try directory.remove(name) }
  }
}
