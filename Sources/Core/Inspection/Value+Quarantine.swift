import Containers
import Monitoring
import SystemCalls
public import Values

extension Value {
  /// Moves the value's file into the container's `quarantine/`, whatever it is. The value is absent
  /// afterwards, and the file can still be examined.
  ///
  /// For a value that cannot be read and whose content may still be needed; `remove` and `replace`
  /// also repair it.
  ///
  /// - Parameter deadline: The latest instant to wait for the lease; by default `standardWait` from
  ///   now.
  /// - Returns: The file's new path, or nil if there was none.
  /// - Throws: `AppGroupError`, as `remove`.
  @discardableResult
  public func quarantine(until deadline: ContinuousClock.Instant? = nil) throws -> String? {
    try container.requireDirectory(
      "put the value aside", remedy: "copy it with etcdctl get, and replace or remove it")
    return try Change<String?>(directory, protecting: fileName, .init(until: deadline)) {
      lease, _ in
      try putAside(fileName, lease).map { container.root.path + "/" + $0 }
    }.run()
  }

  func putAside(_ name: String, _ lease: Lease) throws -> String? {
    let source = try lease.site.directory()
    do throws(Errno) {
      guard try fileStatus(name, at: source).kind != .directory else {
        return try Quarantine.takeDirectory(name, at: source, root: container.root)
      }
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
    // The rename of a deletion alone is not enough (rule 2): a crash in the middle would leave the
    // file in the lease, where the next holder removes it. With a second name it is never lost. A
    // process whose lease was taken over has then only made a copy.
    let aside = try Quarantine.link(name, at: source, root: container.root)
    return try lease.remove(name, durability: .standard) ? aside : nil
  }
}
