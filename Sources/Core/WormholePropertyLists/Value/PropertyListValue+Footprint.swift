/// The size of a value, counted without writing it.
package struct PropertyListFootprint: Sendable, Hashable {
  /// The number of values; dictionary keys are counted too.
  package var nodes = 1
  /// The bytes of strings, keys and data.
  package var contentBytes = 0
  /// The deepest nesting of containers.
  package var depth = 0

  /// The approximate size in a file, in bytes.
  package var fileBytes: Int { contentBytes + 4 * nodes }

  /// The largest size in a binary file, in bytes: a byte of UTF-8 may become two of UTF-16, and no node
  /// takes more than 32 besides its content.
  package var mostFileBytes: Int { 2 * contentBytes + 32 * nodes + 40 }

  /// Whether the value is so far below all limits that not even a file with hundreds of such values
  /// needs a check.
  package var isSmall: Bool { nodes <= 1_000 && contentBytes <= 1 << 20 && depth <= 64 }
}

extension PropertyListValue {
  /// The footprint of the value.
  ///
  /// - Complexity: Linear in the number of nodes. Nothing recurses, and a scalar allocates nothing.
  package var footprint: PropertyListFootprint {
    var footprint = PropertyListFootprint()
    // The containers of the next level.
    var next: [PropertyListValue] = []
    count(in: &footprint, &next)
    while !next.isEmpty {
      footprint.depth += 1
      let level = next
      next = []
      for container in level {
        switch container {
        case .array(let array):
          footprint.nodes += array.count
          for element in array { element.count(in: &footprint, &next) }
        case .dictionary(let dictionary):
          footprint.nodes += 2 * dictionary.count
          for (key, value) in dictionary {
            footprint.contentBytes += key.utf8.count
            value.count(in: &footprint, &next)
          }
        default: break
        }
      }
    }
    return footprint
  }

  /// Counts the content of a scalar; a container is left for later.
  private func count(
    in footprint: inout PropertyListFootprint, _ containers: inout [PropertyListValue]
  ) {
    switch self {
    case .array, .dictionary: containers.append(self)
    case .string(let string): footprint.contentBytes += string.utf8.count
    case .data(let data): footprint.contentBytes += data.count
    default: break
    }
  }
}
