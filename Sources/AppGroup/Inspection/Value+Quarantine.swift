import SystemCalls

extension Value {
  /// Moves the value's file into the container's `quarantine/`, whatever it is, so that the value
  /// is absent afterwards and what was there can still be looked at.
  ///
  /// For a value that cannot be read and whose content somebody may miss; `remove` and `replace`
  /// mend it as well.
  ///
  /// - Parameter deadline: until when to wait for the lease; by default `standardWait` from now.
  /// - Returns: where it is now; nil when there was nothing.
  /// - Throws: `AppGroupError`, as `remove`.
  @discardableResult
  public func quarantine(until deadline: ContinuousClock.Instant? = nil) throws -> String? {
    let name = fileName
    let terms = Change<String?>.Terms(deadline: deadline ?? .now + Self.standardWait)
    return try Change<String?>(self, terms) { site in
      { lease in try putAside(name, lease, at: site).map { container.root.path + "/" + $0 } }
    }.run()
  }

  func putAside(
    _ name: String, _ lease: Lease, at site: LeaseSite
  ) throws -> String? {
    let source = try site.directory()
    do throws(Errno) {
      guard try fileStatus(name, at: source).kind != .directory else {
        return try Quarantine.takeDirectory(name, at: source, root: container.root)
      }
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
    // Not the rename of a deletion alone (rule 2): a crash in the middle would leave the file in
    // the lease, where the next holder removes it. With a second name it is never lost, and an
    // overtaken process has then made a copy and nothing else.
    let aside = try Quarantine.link(name, at: source, root: container.root)
    return try lease.remove(name, durability: .standard) ? aside : nil
  }
}
