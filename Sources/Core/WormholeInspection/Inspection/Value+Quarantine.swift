package import FoundationEssentials
public import Wormhole
import WormholeSystem

extension Value {
  /// Moves the value's file into the container's `quarantine/`, whatever it is. The value is absent
  /// afterwards, and the file can still be examined.
  ///
  /// But if the file cannot be read as a property list, and the container still has the version
  /// that it keeps for a loss of power, that version is the value afterwards: no repair removes the
  /// last readable version.
  ///
  /// Use it for an unreadable value whose content may still be needed; `remove` and `replace` also
  /// repair it.
  ///
  /// - Parameter deadline: The latest instant to wait for the lease; by default `standardWait` from
  ///   now.
  /// - Returns: The file's new path, or nil if there was none.
  /// - Throws: `WormholeError`, as `remove`.
  @discardableResult
  public func quarantine(until deadline: ContinuousClock.Instant? = nil) throws -> String? {
    try putAside(until: deadline)?.path
  }

  /// Moves the file aside; see `quarantine(until:)`.
  ///
  /// - Returns: The file's new path, and when the version that is now the value was published.
  package func putAside(
    until deadline: ContinuousClock.Instant?
  ) throws -> (path: String, kept: Date?)? {
    try container.requireDirectory(
      "put the value aside", remedy: "copy it with etcdctl get, and replace or remove it")
    // A change would make the name.
    let isKnown = try reporting("put the value aside", path: path) { try directory.open() != nil }
    guard isKnown else { return nil }
    return try Change<(path: String, kept: Date?)?>(
      directory, protecting: fileName, .init(until: deadline)
    ) { lease, _ in
      let kept = try keptInstead()
      return try putAside(fileName, lease, hasKept: kept != nil).map {
        (container.root.path + "/" + $0, kept)
      }
    }.run()
  }

  /// Returns when a readable kept version was published, if the value's file cannot be read.
  package func keptInstead() throws -> Date? {
    do {
      let snapshot = try snapshot()
      if let published = snapshot.standsInFrom { return published }
      _ = try snapshot.propertyList()
      return nil
    } catch let error as WormholeError where [.damaged, .notAValue, .tooLarge].contains(error.code)
    {
      return try store.file.keptDate()
    }
  }

  func putAside(_ name: String, _ lease: Lease, hasKept: Bool = false) throws -> String? {
    let source = try lease.site.directory()
    guard let kind = try ifPresent(fileStatus(name, at: source).kind) else { return nil }
    guard kind != .directory else {
      guard
        let aside = try ifPresent(
          Quarantine.take(FileName(name + "/"), at: source, root: container.root))
      else { return nil }
      if hasKept { _ = try lease.putBackKept(as: name) }
      return aside
    }
    // The rename of a deletion alone is not enough (rule 2): a crash in the middle would leave the
    // file in the lease, where the next holder removes it. With a second name it is never lost. A
    // process whose lease was taken over has then only made a copy.
    let aside = try Quarantine.link(name, at: source, root: container.root)
    if hasKept, try lease.putBackKept(as: name) { return aside }
    return try lease.remove(name, durability: .standard) ? aside : nil
  }
}
