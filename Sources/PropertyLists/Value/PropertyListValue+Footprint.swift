/// How much a value holds, counted without writing it.
package struct PropertyListFootprint: Sendable, Hashable {
  /// Values, dictionary keys among them.
  package var nodes = 1
  /// The bytes of strings, keys and data.
  package var contentBytes = 0
  /// The deepest nesting of containers.
  package var depth = 0

  /// About as many bytes as it takes in a file.
  package var fileBytes: Int { contentBytes + 4 * nodes }

  /// Whether it is so far below all limits that what is written of it need not be checked, nor of
  /// hundreds such in one file.
  package var isSmall: Bool { nodes <= 1_000 && contentBytes <= 1 << 20 && depth <= 64 }
}

extension PropertyListValue {
  /// What the value holds.
  ///
  /// - Complexity: linear in its nodes; nothing recurses, and a scalar allocates nothing.
  package var footprint: PropertyListFootprint {
    var footprint = PropertyListFootprint()
    guard isContainer else {
      footprint.contentBytes = contentBytes
      return footprint
    }
    var level = [self]
    while !level.isEmpty {
      footprint.depth += 1
      // Of the containers of the next level.
      var next: [PropertyListValue] = []
      for container in level { container.count(into: &footprint, &next) }
      level = next
    }
    return footprint
  }

  private var isContainer: Bool {
    switch self {
    case .array, .dictionary: true
    default: false
    }
  }

  private var contentBytes: Int {
    switch self {
    case .string(let string): string.utf8.count
    case .data(let data): data.count
    default: 0
    }
  }

  private func count(
    into footprint: inout PropertyListFootprint, _ containers: inout [PropertyListValue]
  ) {
    switch self {
    case .array(let array):
      footprint.nodes += array.count
      for element in array { element.count(in: &footprint, &containers) }
    case .dictionary(let dictionary):
      footprint.nodes += 2 * dictionary.count
      for (key, value) in dictionary {
        footprint.contentBytes += key.utf8.count
        value.count(in: &footprint, &containers)
      }
    default: return
    }
  }

  private func count(
    in footprint: inout PropertyListFootprint, _ containers: inout [PropertyListValue]
  ) {
    if isContainer { containers.append(self) } else { footprint.contentBytes += contentBytes }
  }
}
