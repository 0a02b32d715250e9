import SystemCalls

/// Remembers which file an item was when it was first waited for, to find it if it is moved meanwhile.
struct MovedItem {
  private let file: SharedDescriptor

  /// - Returns: nil when there is no item yet.
  init?(_ location: ItemLocation) throws(Errno) {
    do throws(Errno) {
      file = SharedDescriptor(
        try FileDescriptor.open(location.path, [.pathOnly, .noFollow]))
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// Where the item is now, if it is not at its place any more, and nothing else is.
  ///
  /// The kernel knows where a file that is open is now (proc_pid_fd(5)); not after it was published
  /// anew and then moved, for that is another file.
  func newPlace(of location: ItemLocation) throws -> ItemLocation? {
    guard try location.status() == nil else { return nil }
    let status = try file.descriptor.status()
    guard status.links > 0 else { return nil }
    let path = try linkTarget("/proc/self/fd/\(file.descriptor.rawValue)")
    // On its way out: what is in a site is nobody's item any more.
    guard !path.split(separator: "/").contains(where: { $0.hasPrefix(ItemSite.prefix) }) else {
      return nil
    }
    let place: ItemLocation
    do {
      place = try ItemLocation.resolve(path, followingLink: false)
    } catch let error as FileCoordinationError where error.code == .directoryMissing {
      return nil
    }
    // Deleted or replaced, and on its way out.
    guard !ItemLocation.isPutAway(place.path) else { return nil }
    guard place != location, try place.status()?.isSameFile(as: status) == true else { return nil }
    return place
  }
}
