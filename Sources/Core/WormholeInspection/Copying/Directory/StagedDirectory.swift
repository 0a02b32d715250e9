import Wormhole
import WormholeSystem

/// A directory for the time of one piece of work. Its name says its purpose, and no other program
/// mistakes it for its own.
struct StagedDirectory {
  let path: String
  let root: SharedDescriptor

  init(_ path: String, _ action: String) throws {
    self.path = path
    root = try reporting(action, path: path) {
      try makeDirectory(path, mode: 0o700)
      return SharedDescriptor(try FileDescriptor.open(path, [.readOnly, .directory, .noFollow]))
    }
  }

  var name: FileName { FileName(path.split(separator: "/").last ?? "") }

  func openParent() throws(Errno) -> FileDescriptor {
    let end = path.lastIndex(of: "/") ?? path.startIndex
    return try .open(String(path[...end]), [.readOnly, .directory])
  }

  func remove() {
    do {
      let parent = try openParent()
      try TreeRemoval().remove(name, at: parent.rawValue)
    } catch {
      // The failure of the work itself has to be reported.
      return
    }
  }
}
