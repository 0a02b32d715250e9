/// The receiver of a scanner's findings, in the order of the text.
protocol PropertyListSink {
  /// Whether the sink uses the contents of strings and data; otherwise the scanner does not build
  /// them.
  static var wantsContent: Bool { get }

  mutating func openArray()
  mutating func openDictionary()
  mutating func closeContainer()
  /// - Returns: Whether the key is the first of its name in the dictionary.
  mutating func name(_ key: String) -> Bool
  mutating func add(_ value: PropertyListValue)
}

/// A sink that keeps only the keys of the dictionaries that are open.
struct PropertyListKeySink: PropertyListSink {
  static var wantsContent: Bool { false }

  private var keys: [Set<String>] = []

  mutating func openArray() { keys.append([]) }
  mutating func openDictionary() { keys.append([]) }
  mutating func closeContainer() { keys.removeLast() }
  mutating func name(_ key: String) -> Bool { keys[keys.count - 1].insert(key).inserted }
  mutating func add(_ value: PropertyListValue) {}
}
