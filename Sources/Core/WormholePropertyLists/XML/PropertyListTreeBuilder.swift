/// Builds a value from its parts in reading order, without recursion.
struct PropertyListTreeBuilder {
  private struct Container {
    var isDictionary: Bool
    var elements: [PropertyListValue] = []
    var entries: [String: PropertyListValue] = [:]
    var key: String?
  }

  private var containers: [Container] = []
  private var root: PropertyListValue?

  mutating func openArray() { containers.append(Container(isDictionary: false)) }

  mutating func openDictionary() { containers.append(Container(isDictionary: true)) }

  mutating func closeContainer() {
    guard let container = containers.popLast() else {
      preconditionFailure("a container is closed that was never opened")
    }
    add(container.isDictionary ? .dictionary(container.entries) : .array(container.elements))
  }

  /// Sets the key of the next value.
  ///
  /// - Returns: Whether the key is the first of its name in the dictionary.
  mutating func name(_ key: String) -> Bool {
    let last = containers.count - 1
    containers[last].key = key
    return containers[last].entries[key] == nil
  }

  mutating func add(_ value: PropertyListValue) {
    let last = containers.count - 1
    guard last >= 0 else {
      root = value
      return
    }
    if let key = containers[last].key {
      containers[last].entries[key] = value
      containers[last].key = nil
    } else {
      containers[last].elements.append(value)
    }
  }

  /// Returns the complete value.
  func value() throws(PropertyListError) -> PropertyListValue {
    guard let root else { throw PropertyListError(.malformed, atByte: 0, "it holds no value") }
    return root
  }
}
