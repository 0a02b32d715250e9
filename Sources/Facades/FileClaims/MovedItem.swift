import SystemCalls

/// The file of an item at the beginning of a wait, to find it if it is moved meanwhile.
struct MovedItem {
  private let file: SharedDescriptor

  /// - Returns: nil when there is no item yet.
  init?(_ location: ItemLocation) throws(Errno) {
    guard
      let file = try ifPresent(
        SharedDescriptor(FileDescriptor.open(location.path, [.pathOnly, .noFollow])))
    else { return nil }
    self.file = file
  }

  /// Where the item is now, if it is not at its place any more, and nothing else is.
  ///
  /// The kernel knows the present place of an open file (proc_pid_fd(5)). An item that was published
  /// again and then moved is not found, because that is a different file.
  func newPlace(of location: ItemLocation) throws -> ItemLocation? {
    guard try location.status() == nil else { return nil }
    let status = try file.descriptor.status()
    guard status.links > 0 else { return nil }
    let path = try linkTarget("/proc/self/fd/\(file.descriptor.rawValue)")
    // On its way out: an entry of a site is no item any more.
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
    guard !ItemPath(place.path).isPutAway else { return nil }
    guard place != location, try place.status()?.isSameFile(as: status) == true else { return nil }
    return place
  }
}
