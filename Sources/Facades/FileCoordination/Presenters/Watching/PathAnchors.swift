import AppGroup
import FileClaims
import SystemCalls

/// Where news come from: the way to the item, or a directory of its tree (or the file itself).
enum WatchSource: Hashable, Sendable {
  case way
  case node(ItemTree.NodeID)
}

/// Watches on the directories above an item: by their being moved or removed it is elsewhere or
/// gone, and where nothing is at the path, the nearest existing directory reports the appearance.
struct PathAnchors {
  private var watches: [Watch] = []

  /// Watches the way to a path; a former one's watches end after this.
  ///
  /// - Parameter isPresent: whether the item exists, so that its own watch reports the rest.
  /// - Returns: false when a directory of the way was made at the same time as its watch: no event has
  ///   reported it, and no watch is in it, so the way has to be watched again.
  @discardableResult
  mutating func set(
    _ path: ItemPath, isPresent: Bool,
    _ hear: @escaping @Sendable (WatchSource, WatchNews) -> Void
  ) -> Bool {
    var new: [Watch] = []
    var isStillMissing = true
    var missing: FileName? = isPresent ? nil : path.name
    var isMissingWatched = isPresent
    for directory in path.ancestors {
      guard let open = open(directory) else {
        missing = directory.name
        isMissingWatched = false
        continue
      }
      var events: WatchEvents = [.selfMoved, .selfDeleted]
      let awaited = isMissingWatched ? nil : missing
      if awaited != nil { events.formUnion([.created, .movedTo, .attributes]) }
      let watch = ChangeMonitor.shared.watchOpen(open.descriptor, events) { news in
        guard let awaited, !news.isEverything, news.own.isEmpty else { return hear(.way, news) }
        // Whatever else appears beside the way costs nothing more than this.
        if news.names[awaited] != nil { hear(.way, news) }
      }
      // A directory above that may not be watched is not worth looking at all the time for it.
      if watch.detection == .events || awaited != nil { new.append(watch) }
      if let awaited { isStillMissing = self.open(directory.appending(awaited)) == nil }
      isMissingWatched = true
    }
    watches = new
    return isStillMissing
  }

  private func open(_ directory: ItemPath) -> SharedDescriptor? {
    do throws(Errno) {
      return SharedDescriptor(
        try FileDescriptor.open(directory.text, [.pathOnly, .directory]))
    } catch {
      // Missing, or not open to this user: the directory above reports a change of that.
      return nil
    }
  }
}
