/// The parents of watched directories: losing one of them loses everything below it. And the ways
/// to containers: after a change of one of their entries, the path may name another container.
extension WatchTable {
  /// A parent directory, watched for its own end and for removals of its directories.
  struct Parent {
    var number: Int32?
    var users = 0
  }

  func isMissing(parent path: String) -> Bool {
    parents[path].map { $0.number == nil } ?? false
  }

  /// Enters the kernel's watch for a parent; it replaces the watch for a previous directory there.
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
    let paths = paths.filter { targets[$0] != nil || parents[$0] != nil }
    guard !paths.isEmpty else { return [] }
    // A moved directory is still watched, under its old number.
    for path in paths { lose(parent: path) }
    return entries.compactMap { id, entry in
      guard let target = entry.target,
        paths.contains(target.path) || target.parents.contains(where: paths.contains)
      else { return nil }
      noteRemoval(in: target.lane, now: now)
      return id
    }
  }

  /// A watched way, whose directories and links are watched for their own end.
  struct Way {
    var numbers: Set<Int32> = []
    var isWatched = false
    var users = 0
  }

  func isWatched(way path: String) -> Bool { ways[path]?.isWatched ?? true }

  mutating func noteWatched(way path: String) { ways[path]?.isWatched = true }

  mutating func enter(_ number: Int32, forWay path: String) {
    guard ways[path] != nil else { return endIfUnused(number) }
    ways[path]?.numbers.insert(number)
    waysByNumber[number, default: []].insert(path)
  }

  mutating func lose(way path: String) {
    guard let way = ways[path] else { return }
    ways[path]?.numbers = []
    ways[path]?.isWatched = false
    for number in way.numbers {
      waysByNumber[number]?.remove(path)
      if waysByNumber[number]?.isEmpty == true { waysByNumber[number] = nil }
      endIfUnused(number)
    }
  }

  /// Notes that entries of ways were replaced, removed or moved; returns the targets' entries.
  mutating func sought(afterChangeOf paths: Set<String>) -> [ID] {
    for path in paths { lose(way: path) }
    return entries.compactMap { id, entry in
      entry.target?.way.map(paths.contains) == true ? id : nil
    }
  }
}
