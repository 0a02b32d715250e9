/// The rank of a waiting entry among others, whenever they were sent.
///
/// Entries of one priority keep the order of their sender; entries of a lower priority wait as long
/// as one of a higher priority may be delivered.
///
/// ```swift
/// let sender = try container.queue("jobs").sender("box office")
/// try await sender.enqueue(["film": "Metropolis"], priority: .high)     // before all others
/// try await sender.enqueue(["report": "daily"], priority: .low)
/// ```
public enum EntryPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// Before all other priorities.
  case high
  /// The priority of an entry whose sender names no other.
  case standard
  /// After all other priorities.
  case low

  public static func < (first: EntryPriority, second: EntryPriority) -> Bool {
    first.rawValue < second.rawValue
  }

  /// The beginning of a file's name: an order begins with a hex digit, and these sort before and
  /// after them.
  package var mark: String {
    switch self {
    case .high: "+"
    case .standard: ""
    case .low: "~"
    }
  }

  /// The priority that the first byte of a file's name encodes.
  package init(firstByte: UInt8?) {
    switch firstByte {
    case UInt8(ascii: "+"): self = .high
    case UInt8(ascii: "~"): self = .low
    default: self = .standard
    }
  }
}
