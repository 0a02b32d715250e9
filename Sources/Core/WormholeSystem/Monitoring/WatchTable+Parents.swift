/// The parents of watched directories: the loss of one of them is the loss of all below it.
extension WatchTable {
  /// A parent directory, watched for its own end and for removals of its directories.
  struct Parent {
    var number: Int32?
    var users = 0
  }

  func isMissing(parent path: String) -> Bool {
    parents[path].map { $0.number == nil } ?? false
  }

  /// Enters the kernel's watch for a parent, in place of that for a directory that was there before.
  mutating func enter(_ number: Int32, forParent path: String) {
    guard let parent = parents[path] else { return endIfUnused(number) }
    guard parent.number != number else { return }
    lose(parent: path)
    parents[path]?.number = number
    parentsByNumber[number, default: []].insert(path)
  }

  mutating func lose(parent path: String) {
    guard let number = parents[path]?.number else { return }
    parents[path]?.number = nil
    parentsByNumber[number]?.remove(path)
    if parentsByNumber[number]?.isEmpty == true { parentsByNumber[number] = nil }
    endIfUnused(number)
  }

  /// Notes that directories were moved or removed; returns the entries of them and below them.
  mutating func sought(afterLossOf paths: Set<String>, now: ContinuousClock.Instant) -> [ID] {
    // Most directories that are removed have no watcher here: the mailbox of a process that ends.
    let paths = paths.filter { places[$0] != nil || parents[$0] != nil }
    guard !paths.isEmpty else { return [] }
    // A moved directory is still watched, under its old number.
    for path in paths { lose(parent: path) }
    return entries.compactMap { id, entry in
      guard let place = entry.place,
        paths.contains(place.path) || place.parents.contains(where: paths.contains)
      else { return nil }
      noteRemoval(in: place.lane, now: now)
      return id
    }
  }
}
