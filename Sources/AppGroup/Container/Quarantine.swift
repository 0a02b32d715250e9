import SystemCalls

/// `quarantine/`: what could not be read, moved aside with its name, never deleted silently.
enum Quarantine {
  static let directory = "quarantine"

  /// Moves a file or directory aside, in one step.
  static func take(_ name: String, at source: Int32, root: ContainerRoot) throws(Errno) {
    let handle: ContainerRoot.Handle
    do {
      handle = try root.handle()
    } catch let error as Errno {
      throw error
    } catch {
      // The container has just been replaced: then so has what we would have put aside.
      throw .staleHandle
    }
    let container = handle.descriptor.rawValue
    try root.makeDirectoryIfMissing(directory, at: container)
    let aside = directory + "/" + String(name.prefix(100)) + "-" + Nonce.next()
    try rename(name, at: source, to: aside, at: container)
  }
}
