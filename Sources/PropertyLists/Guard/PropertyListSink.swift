/// What a scanner tells of a property list, in the order of the text.
protocol PropertyListSink {
  /// Whether the contents of strings and data are looked at; otherwise they need not be built.
  static var wantsContent: Bool { get }

  mutating func openArray()
  mutating func openDictionary()
  mutating func closeContainer()
  /// - Returns: Whether the dictionary did not have the key yet.
  mutating func name(_ key: String) -> Bool
  mutating func add(_ value: PropertyListValue)
}

extension PropertyListTreeBuilder: PropertyListSink {
  static var wantsContent: Bool { true }

  mutating func openArray() { openArray(count: 0) }
  mutating func openDictionary() { openDictionary(count: 0) }
}

/// Keeps nothing of a property list but the keys of the dictionaries that are open.
struct PropertyListKeySink: PropertyListSink {
  static var wantsContent: Bool { false }

  private var keys: [Set<String>] = []

  mutating func openArray() { keys.append([]) }
  mutating func openDictionary() { keys.append([]) }
  mutating func closeContainer() { keys.removeLast() }
  mutating func name(_ key: String) -> Bool { keys[keys.count - 1].insert(key).inserted }
  mutating func add(_ value: PropertyListValue) {}
}
