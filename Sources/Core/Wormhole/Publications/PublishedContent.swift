import WormholePropertyLists
package import WormholeSystem

/// The bytes of a file that is about to be published: a property list, with a record of the
/// publication if it is a binary one.
package struct PublishedContent: Sendable {
  /// The caller's property list, which is not copied.
  private let document: [UInt8]
  private let unchanged: Int
  private let end: [UInt8]
  package let expires: Bool
  /// Whether a block of it is zeros, as after a loss of power.
  package let hasEmptyBlocks: Bool

  package init(_ document: [UInt8], _ record: PublicationRecord?) {
    self.document = document
    // With the record, the last block is not only zeros.
    hasEmptyBlocks = Self.hasEmptyBlock(document)
    var record = record
    if hasEmptyBlocks { record?.noteEmptyBlocks() }
    let end = record.flatMap {
      BinaryPropertyListAnnotation.end(with: $0.bytes, of: document)
    }
    unchanged = end?.unchanged ?? document.count
    self.end = end?.bytes ?? []
    expires = record?.expiry != nil
    precondition(!expires || end != nil, "only a binary property list can expire")
  }

  package var hasRecord: Bool { !end.isEmpty }

  /// A block is on the disk completely or not at all. On a file system with smaller ones, only content of
  /// one block is published without a wait.
  package static let blockBytes = 4_096

  /// Returns whether a block of a file with this content is zeros.
  static func hasEmptyBlock(_ content: [UInt8]) -> Bool {
    var rest = content[...]
    while let first = rest.first {
      if first == 0, rest.prefix(blockBytes).allSatisfy({ $0 == 0 }) { return true }
      rest = rest.dropFirst(blockBytes)
    }
    return false
  }

  /// The number of bytes of the file.
  package var count: Int { unchanged + end.count }

  /// Returns the largest file for a property list of a size.
  package static func largest(_ count: Int) -> Int {
    count + min(BinaryPropertyListAnnotation.maximumGrowth, Int.max - count)
  }

  package var bytes: [UInt8] { document.prefix(unchanged) + end }

  /// Writes the bytes, in one system call.
  package func write(to file: borrowing FileDescriptor) throws(Errno) {
    try file.writeAll(document, count: unchanged, end)
  }
}

extension PublicationRecord {
  /// Removes the record from the bytes of a file, which are then the property list as it was
  /// published.
  ///
  /// - Returns: nil if there is no record, or a malformed one.
  package static func take(from file: inout [UInt8]) -> PublicationRecord? {
    BinaryPropertyListAnnotation.remove(from: &file).flatMap { PublicationRecord($0) }
  }
}
