package import WormholeSystem

/// Content that is written, and fsynced, before the lease is taken: the time under a lease stays
/// short, however large or durable the content is.
///
/// The file is in the site's `lease` directory, locked by its writer. An unlocked file was left by
/// a dead process, and the next process that prepares content removes it.
package final class PreparedContent: Sendable {
  let path: String
  package let stamp: Stamp
  private let site: LeaseSite
  private let file: FileDescriptor

  /// Content of at least this size is prepared, smaller content only if it should be durable.
  package static let worthwhileBytes = 262_144

  package init(_ content: PublishedContent, at site: LeaseSite, durability: Durability)
    throws(Errno)
  {
    self.site = site
    try site.home.makeDirectoryIfMissing(LeaseSite.lease, at: try site.directory(), staging: nil)
    do throws(Errno) {
      try site.clearRemains()
    } catch {
      // The next process that wants the lease waits for that.
      guard error == .deviceBusy else { throw error }
    }
    let path = LeaseSite.lease + "/" + LeaseSite.preparedPrefix + Nonce.next()
    let file = try site.home.access.createFile(path, at: try site.directory())
    do throws(Errno) {
      // Free: only a sweeper opens it, and that removes it, so renaming it will fail.
      _ = try file.tryLock(.exclusive)
      try site.home.access.write(content, to: file)
      stamp = try site.home.stamp(file)
      if durability == .durable {
        try site.synchronizeContent(file)
      } else {
        try file.writeBack()
      }
    } catch {
      // It was swept, or is left to the next sweep.
      try? removeFile(path, at: site.directory())
      throw error
    }
    self.path = path
    self.file = file
  }

  deinit {
    // It fails if it was published or swept: in either case it is gone.
    try? removeFile(path, at: site.directory())
  }
}
