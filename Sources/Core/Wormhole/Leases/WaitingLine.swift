import WormholeSystem

/// The file of a writer that waits for a lease, `lease/waiting-<nonce>`, which it locked before the
/// file got that name (rule 7).
struct WaitingLine {
  private let site: LeaseSite
  /// This process, waiting to write.
  private var own: Waiter?

  init(site: LeaseSite) {
    self.site = site
  }

  private final class Waiter: Sendable {
    let name: String
    let descriptor: FileDescriptor
    private let site: LeaseSite

    init(_ name: String, _ descriptor: consuming FileDescriptor, at site: LeaseSite) {
      self.name = name
      self.descriptor = descriptor
      self.site = site
    }

    deinit {
      // It was removed, or is swept as soon as the lock is released, which is now.
      try? removeFile(name, at: site.directory())
    }
  }

  /// Joins the line, unless this writer is in it already.
  mutating func join() throws(Errno) {
    if let own, try own.descriptor.status().links > 0 { return }
    let nonce = Nonce.next()
    let staged = site.layout.prefix + LeaseSite.preparedPrefix + nonce
    let name = site.layout.prefix + LeaseSite.waitingPrefix + nonce
    // Without room for it, there is none.
    guard
      let file = try tolerating(
        [.noSpace, .diskQuotaExceeded],
        site.home.access.createFile(staged, at: try site.directory()))
    else { return }
    // Free: only a sweeper opens it, and removes it, so that the rename fails and the next look
    // joins.
    _ = try file.tryLock(.exclusive)
    try rename(staged, at: try site.directory(), to: name, at: try site.directory())
    own = Waiter(name, file, at: site)
  }

  /// Leaves the line, with or without the lease.
  mutating func leave() { own = nil }
}
