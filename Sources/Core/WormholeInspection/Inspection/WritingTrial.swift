package import Wormhole
import WormholeSystem

extension SharedContainer {
  /// Tries the steps of every writer in a directory: creates an entry, writes a block, renames it,
  /// creates a directory, and removes both. They have names of a container that is being created,
  /// so a sweep removes them. On etcd it asks for a change under a condition that never holds: etcd
  /// checks the user's rights and the database's quota before the condition, and nothing changes.
  ///
  /// - Throws: `AppGroupError`: there is no space or no inode, the quota is used up, the file system is
  ///   read-only, or the user may not write.
  /// - Complexity: Eight calls; on etcd one round trip.
  package func tryWriting() throws {
    try reporting("write in the container", path: location) { try inspected.tryWriting() }
  }
}

extension DirectoryEngine {
  package func tryWriting() throws {
    let handle = try root.handle()
    let directory = handle.descriptor.rawValue
    let nonce = Nonce.next()
    let (first, second) = (".container-\(nonce).plist", ".container-\(nonce)-2.plist")
    let place = ".new-\(nonce)"
    do {
      let block = [UInt8](repeating: 0, count: Int(min(handle.status.blockBytes, 65_536)))
      let file = try root.access.createFile(first, at: directory)
      try file.writeAll(block)
      try rename(first, at: directory, to: second, at: directory)
      try makeDirectory(place, at: directory)
      try removeDirectory(place, at: directory)
      try removeFile(second, at: directory)
    } catch {
      for name in [first, second] { try removeIfPresent(name, at: directory) }
      throw error
    }
  }
}
