import Synchronization
package import WormholeSystem

/// One row that describes what a primitive keeps in the directory of a name: a file, or a directory
/// with its own parts.
///
/// Each primitive has its table of rows beside its code (`ContainerRoot.parts(of:)` has all). The report, the sweep,
/// the monitor and the copy of a container read the same tables, so a new part is a new row:
///
/// | reader | what it does with a row |
/// |---|---|
/// | report | counts it or calls it a leftover, by its role; an entry that no row describes is foreign |
/// | sweep | removes what a dead process left there, by its role, and the directory when a name is unused |
/// | monitor | watches a directory in which a role causes events |
/// | copy | takes along what outlives processes: see `Copied` |
package struct ContainerPart: Sendable {
  package enum Role: Hashable, Sendable {
    /// It only belongs to the name: nothing in it is counted or left by a crash.
    case plain
    /// The property list that the name's lease protects.
    case content
    /// The file whose name changes with a post.
    case post
    /// A process that is present, or on its way.
    case registration
    /// The process that was present last.
    case last
    /// Entries of a queue, sent together.
    case waiting, taken, receipt
    /// The number of deliveries of taken entries.
    case deliveries
    /// The end of an entry that was not processed, and an entry that failed and was kept.
    case outcome, failure
    /// The numbers of cleared entries, beside the receipt of their batch.
    case forgotten
    /// A mark of an entry that a newer one is to supersede.
    case mark
    /// A file that accompanies an entry, and the directory of a consumer.
    case attachment, consumer
    /// A message of a log.
    case message
    /// The directory of the lease, and in it the lease itself, one that was taken over, the note of a
    /// transaction, and the note of a takeover.
    case lease, held, broken, transaction, takeover
    /// A file that is being written; its writer has it locked as long as it lives.
    case unfinished

    /// Whether a monitor reports the part.
    package var isMonitored: Bool {
      switch self {
      case .content, .post, .registration, .waiting, .taken, .message: true
      default: false
      }
    }
  }

  /// What a copy of the container includes.
  package enum Copied: Sendable {
    /// Nothing: the part belongs to live processes, or is useless without them.
    case nothing
    /// The result of a look at it.
    case meaning
    /// The file, or the directory with everything below it except parts that are not copied.
    case whole
    /// The same for each entry of the directory; nothing is created for an empty directory.
    case each
  }

  package let role: Role
  package let copied: Copied
  /// The parts of a directory; nil for a part that need not be a directory.
  package let parts: [ContainerPart]?
  /// The name, if there is only one such part; nil if there may be any number.
  package let name: String?
  private let isOurs: @Sendable (FileName) -> Bool

  package init(
    _ name: String, _ role: Role = .plain, copied: Copied = .whole, parts: [ContainerPart]? = nil
  ) {
    self.name = name
    self.role = role
    self.copied = copied
    self.parts = parts
    isOurs = { $0.bytes.elementsEqual(name.utf8) }
  }

  /// A part of which there may be any number.
  package init(
    each role: Role, copied: Copied = .whole, parts: [ContainerPart]? = nil,
    where isOurs: @escaping @Sendable (FileName) -> Bool = { _ in true }
  ) {
    name = nil
    self.role = role
    self.copied = copied
    self.parts = parts
    self.isOurs = isOurs
  }

  /// The same, by the beginning of its names.
  init(each role: Role, _ prefix: String, copied: Copied = .whole) {
    self.init(each: role, copied: copied) { $0.hasPrefix(prefix) }
  }

  package func isNamed(_ name: FileName) -> Bool { isOurs(name) }

  /// Whether the part, or a part in it, matches.
  package func contains(_ isSought: (ContainerPart) -> Bool) -> Bool {
    isSought(self) || parts?.contains { $0.contains(isSought) } ?? false
  }
}

/// Rows that a test plants before those of a primitive, to find out which readers know them.
final class PlantedParts: ContainerMemory {
  let rows = Mutex<[NameKind.Primitive: [ContainerPart]]>([:])
}

extension ContainerRoot {
  /// Returns the rows of a primitive: its own.
  package func parts(
    _ own: [ContainerPart], of primitive: NameKind.Primitive
  ) -> [ContainerPart] {
    let planted = memory(PlantedParts.self).rows.withLock { $0[primitive] }
    // Not a copy: a monitor keeps them for each name.
    return planted.map { $0 + own } ?? own
  }
}
