import Synchronization

/// The monitor's work on file systems. It never holds the monitor's lock and never runs on the
/// monitor's thread, because a file system that does not answer (a network's, or a hanging
/// program's) blocks the calling thread.
///
/// The thread that wants to watch a target makes the first look at it. All later looks happen in the
/// target's lane: one thread for each container with pending looks. So only the users of a file
/// system that does not answer wait.
extension ChangeMonitor {
  /// The finding of a look at a target.
  enum Finding {
    /// The path names the watched directory.
    case same
    /// Another directory is watched now; on a network file system it is polled as well.
    case watched(network: String?)
    /// The target is missing, and nothing may be created yet.
    case missing
    /// By its times, a polled file or directory is as before.
    case unchanged
    /// It is polled.
    case failed(reason: String, seen: PolledStatus? = nil)
  }

  /// Adds an entry, with its watch.
  func insert(_ entry: WatchEntry, at target: WatchEntry.Target) -> WatchTable.ID {
    let id = state.withLock { $0.insert(entry) }
    watchWay(target)
    watchMissing(target.parents)
    end(id, find(id, entry, target: target), mustTell: false)
    return id
  }

  /// Adds an entry for an open file, with its watch.
  func insert(_ entry: WatchEntry, open file: borrowing FileDescriptor) -> WatchTable.ID {
    let id = state.withLock { $0.insert(entry) }
    do throws(Errno) {
      try add(file, events: entry.events) { $0.enter($1, nil, for: id) }
      end(id, .watched(network: network(file)), mustTell: false)
    } catch {
      if entry.showsInTimes, lackOfQueue != nil, network(file) == nil,
        // Without a further descriptor it is looked at completely each time.
        let copy = try? FileDescriptor.open("/proc/self/fd/\(file.rawValue)", .pathOnly)
      {
        let kept = SharedDescriptor(copy)
        state.withLock { $0.keep(kept, for: id) }
      }
      end(id, failed(error), mustTell: false)
    }
    return id
  }

  /// Makes the pending looks of a lane, one after another.
  func work(in lane: String) {
    while let (id, entry) = state.withLock({ $0.nextLook(in: lane) }) {
      guard let target = entry.target else { continue }
      end(id, look(id, entry, target: target), mustTell: true)
    }
  }

  private func end(_ id: WatchTable.ID, _ finding: Finding, mustTell: Bool) {
    let lane = state.withLock { $0.endLook(id, finding, mustTell: mustTell, now: .now) }
    if let lane { startWorking(in: lane) }
  }

  func startWorking(in lane: String) {
    Blocking.urgently { [self] in work(in: lane) }
  }

  private func look(
    _ id: WatchTable.ID, _ entry: WatchEntry, target: WatchEntry.Target
  ) -> Finding {
    if lackOfQueue != nil {
      // A target that cannot be examined counts as changed.
      if let seen = entry.seen, (try? seen.isCurrent()) == true { return .unchanged }
    } else {
      // Before the look at their contents: a later replacement then causes an event.
      watchWay(target)
      watchMissing(target.parents)
      if let watched = entry.watched, names(target.path, watched) { return .same }
      state.withLock { $0.lose(id) }
      watchAgain(target.parents)
    }
    guard mayExist(target.path) || isSettled(target.lane) else { return .missing }
    return find(id, entry, target: target)
  }

  /// Why there is no event queue, for example because the user's instances are used up. Then no
  /// watch is possible, and each attempt would cost time.
  private var lackOfQueue: Errno? {
    do throws(Errno) {
      _ = try state.withLock { table throws(Errno) in try table.eventQueue() }
      return nil
    } catch {
      return error
    }
  }

  /// Watches the directory that the path names, or waits for it if it is missing.
  private func find(
    _ id: WatchTable.ID, _ entry: WatchEntry, target: WatchEntry.Target
  ) -> Finding {
    do {
      try target.prepare()
      if let lackOfQueue { return failed(lackOfQueue, seen: seen(entry, target)) }
      // The directories that it has created.
      watchMissing(target.parents)
      for _ in 0..<renameRaceLimit {
        guard let directory = try ifPresent(open(target.path)) else {
          if let finding = try wait(for: target, id) { return finding }
          continue
        }
        let status = try directory.status()
        do throws(Errno) {
          try add(directory, events: entry.events) { $0.enter($1, status, for: id) }
        } catch {
          return failed(error)
        }
        // Replaced before it was watched, or before its events belonged to this entry, so without
        // an event.
        if names(target.path, status.identity) { return .watched(network: network(directory)) }
        state.withLock { $0.lose(id) }
      }
      return .failed(reason: "\(target.path): it is replaced all the time")
    } catch {
      let reason = (error as? Errno)?.description ?? "\(error)"
      return .failed(reason: "\(target.path): \(reason)")
    }
  }

  /// Watches the nearest existing parent, for the appearance of the missing entry below it.
  ///
  /// - Returns: Nil if it has appeared meanwhile, or the parent was replaced.
  private func wait(for target: WatchEntry.Target, _ id: WatchTable.ID) throws(Errno) -> Finding? {
    var missing = target.path
    for path in target.parents.reversed() {
      guard let parent = try ifPresent(open(path)) else {
        missing = path
        continue
      }
      let status = try parent.status()
      let name = FileName(missing.split(separator: "/").last.map(String.init) ?? "")
      do throws(Errno) {
        try add(parent, events: .appearance) { $0.enter($1, status, for: id, awaiting: name) }
      } catch {
        return failed(error)
      }
      // Either may have happened before it was watched, without an event.
      if names(path, status.identity), !mayExist(missing) {
        return .watched(network: network(parent))
      }
      state.withLock { $0.lose(id) }
      return nil
    }
    throw .noSuchFile
  }

  private func failed(_ error: Errno, seen: PolledStatus? = nil) -> Finding {
    let advice = error == .noSpace ? " (fs.inotify.max_user_watches)" : ""
    return .failed(reason: "inotify: \(error)\(advice)", seen: seen)
  }

  /// Compares the status of a polled open file with that at the last look. On the monitor's thread,
  /// because only files on local file systems, which answer, are compared.
  func compare(_ id: WatchTable.ID, _ entry: WatchEntry, _ file: SharedDescriptor) {
    guard case .polling(let reason) = entry.detection else { return }
    // A file that cannot be examined counts as changed.
    if let seen = entry.seen, (try? seen.isCurrent(file.descriptor)) == true { return }
    // It is looked at again then.
    let seen = try? PolledStatus(file.descriptor)
    end(id, .failed(reason: reason, seen: seen), mustTell: true)
  }

  /// Returns the status of a directory, if it shows each event from now on. The appearance of a missing
  /// one shows in the nearest existing parent.
  private func seen(_ entry: WatchEntry, _ target: WatchEntry.Target) -> PolledStatus? {
    guard entry.showsInTimes || target.showsInFiles else { return nil }
    do throws(Errno) {
      for path in [target.path] + target.parents.reversed() {
        guard let directory = try ifPresent(open(path)) else { continue }
        guard network(directory) == nil else { return nil }
        return try PolledStatus(
          directory, at: path, includesFiles: !entry.showsInTimes && path == target.path)
      }
      return nil
    } catch {
      // A directory that cannot be examined is looked at completely each time.
      return nil
    }
  }

  /// Watches each entry on the way to a target, unless that is done. An entry that cannot be watched
  /// is not worth constant looks.
  private func watchWay(_ target: WatchEntry.Target) {
    guard let path = target.way, state.withLock({ !$0.isWatched(way: path) }) else { return }
    for _ in 0..<renameRaceLimit {
      let way = PathWay(to: path)
      for entry in way.entries {
        // If it cannot be watched, the check once a minute finds a change there.
        try? add(entry.file.descriptor, events: entry.events) { $0.enter($1, forWay: path) }
      }
      // Replaced before it was watched, so without an event.
      guard PathWay(to: path).isSame(as: way) else {
        state.withLock { $0.lose(way: path) }
        continue
      }
      // While an entry is missing, each look for the target walks the way again.
      if way.isWhole { state.withLock { $0.noteWatched(way: path) } }
      return
    }
  }

  private func watchMissing(_ parents: [String]) {
    watchAgain(parents.filter { path in state.withLock { $0.isMissing(parent: path) } })
  }

  private func watchAgain(_ parents: [String]) {
    // If one is missing, or no watch is left, the next look at its contents tries again.
    for path in parents { try? watch(parent: path) }
  }

  private func watch(parent path: String) throws(Errno) {
    for _ in 0..<renameRaceLimit {
      let parent = try open(path)
      let status = try parent.status()
      try add(parent, events: [.deleted, .selfDeleted, .selfMoved, .onlyDirectory]) {
        $0.enter($1, forParent: path)
      }
      if names(path, status.identity) { return }
      state.withLock { $0.lose(parent: path) }
    }
  }

  private func open(_ path: String) throws(Errno) -> FileDescriptor {
    try FileDescriptor.open(path, [.pathOnly, .directory, .noFollow])
  }

  private func names(_ path: String, _ file: FileStatus.Identity) -> Bool {
    // A path that cannot be examined counts as missing here.
    (try? fileStatus(path).identity == file) ?? false
  }

  private func network(_ file: borrowing FileDescriptor) -> String? {
    // The watch exists in any case.
    try? file.fileSystem().networkName
  }

  /// Adds the kernel's watch of an open file, and enters its number.
  ///
  /// The kernel gives an inode one number, however often it is added. So between the call and the
  /// entry another thread may end the watch, if it was the last known one. An unused number is
  /// accepted only if no watch was ended meanwhile; otherwise the call is repeated.
  private func add(
    _ file: borrowing FileDescriptor, events: WatchEvents,
    _ enter: (inout WatchTable, Int32) -> Void
  ) throws(Errno) {
    while true {
      let (queue, endings) = try state.withLock { table throws(Errno) -> (SharedDescriptor, Int) in
        (try table.eventQueue(), table.endings)
      }
      // Several entries may watch one inode: their masks add up.
      let number = try queue.descriptor.addWatch(
        "/proc/self/fd/\(file.rawValue)", events.union(.addToExisting))
      let isEntered = state.withLock { table in
        guard table.isUsed(number) || table.endings == endings else { return false }
        enter(&table, number)
        return true
      }
      if isEntered { return }
    }
  }
}
