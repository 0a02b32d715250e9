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
      { lease in
        // Not the rename of a deletion alone (rule 2): a crash in the middle would leave the file
        // in the lease, where the next holder removes it. With a second name it is never lost, and
        // an overtaken process has then made a copy and nothing else.
        guard let aside = try Self.secondName(of: name, at: site) else { return nil }
        guard !aside.wasDirectory else { return site.root.path + "/" + aside.path }
        return try lease.remove(name, durability: .standard)
          ? site.root.path + "/" + aside.path : nil
      }
    }.run()
  }

  private static func secondName(
    of name: String, at site: LeaseSite
  ) throws -> (path: String, wasDirectory: Bool)? {
    let container = try site.root.handle()
    let path = Quarantine.directory + "/" + name + "-" + Nonce.next()
    try site.root.makeDirectoryIfMissing(
      Quarantine.directory, at: container.descriptor.rawValue)
    do throws(Errno) {
      let status = try fileStatus(name, at: site.directory.rawValue)
      guard status.kind == .directory else {
        try link(
          name, at: site.directory.rawValue, to: path, at: container.descriptor.rawValue)
        return (path, false)
      }
      // A directory has no second name; the slash keeps an overtaken process from moving the file
      // that was published meanwhile (rename(2), ENOTDIR).
      try rename(
        name + "/", at: site.directory.rawValue, to: path, at: container.descriptor.rawValue)
      return (path, true)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }
}
