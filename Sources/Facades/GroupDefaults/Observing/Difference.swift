import PropertyLists

/// The difference between two states of a suite.
enum Difference {
  /// Returns the keys that differ, sorted.
  static func keys(from old: Suite.Contents, to new: Suite.Contents) -> [String] {
    var keys = new.compactMap { key, value in old[key] == value ? nil : key }
    keys += old.keys.filter { new[$0] == nil }
    return keys.sorted()
  }
}
