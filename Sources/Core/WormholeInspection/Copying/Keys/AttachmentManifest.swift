import FoundationEssentials
import Wormhole
import WormholePropertyLists

/// The record of a file that accompanies an entry of a queue and whose content is in pieces:
/// `t/<content>/<p>`, at most 512 KiB each; p is the number of the piece, with eight hexadecimal
/// digits, "-", and its checksum, with sixteen.
package struct AttachmentManifest: Sendable, Hashable {
  /// The size of a piece.
  package static let piece = 512 << 10

  /// The name of a piece in the keys of its queue.
  package static func pieceName(
    of content: String, number: Int, checksum: UInt64
  ) -> String {
    "\(content)/\(number.padded(to: 8, radix: 16))-\(checksum.padded(to: 16, radix: 16))"
  }

  /// The name of its pieces.
  package let content: String
  package let size: Int64
  package let sender: String
  /// Whether its pieces are in a directory that the location names, and not with etcd's keys.
  package var isInDirectory = false
  /// The part that is known once the file is whole.
  package var whole: Whole?

  package struct Whole: Sendable, Hashable {
    /// The checksums (XXH64) of the pieces, in their order.
    package var pieces: [UInt64] = []
    package var checksum = XXH64().value

    package init() {}
  }

  package var isWhole: Bool { whole != nil }

  package init(content: String, size: Int64, sender: String) {
    self.content = content
    self.size = size
    self.sender = sender
  }

  /// - Returns: nil for content that another program has put.
  package init?(_ bytes: [UInt8]) {
    guard let value = PropertyListValue(found: bytes),
      let content = value["content"]?.stringValue, AttachmentLayout.isID(content),
      let size = value["size"]?.int64Value, size >= 0
    else { return nil }
    self.init(content: content, size: size, sender: value["sender"]?.stringValue ?? "")
    isInDirectory = value["place"] == "directory"
    guard let checksum = value["checksum"]?.stringValue else { return }
    var whole = Whole()
    guard let all = UInt64(checksum, radix: 16), let pieces = value["pieces"]?.dataValue,
      pieces.count.isMultiple(of: 8),
      Int64(pieces.count / 8) == size / Int64(Self.piece) + (size % Int64(Self.piece) > 0 ? 1 : 0)
    else { return nil }
    whole.checksum = all
    whole.pieces = stride(from: 0, to: pieces.count, by: 8).map { start in
      pieces.dropFirst(start).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
    self.whole = whole
  }

  package func bytes() throws -> [UInt8] {
    var value: PropertyListValue = [
      "content": .string(content), "size": .integer(size), "sender": .string(sender),
    ]
    if isInDirectory { value["place"] = "directory" }
    if let whole {
      value["checksum"] = .string(String(whole.checksum, radix: 16))
      value["pieces"] = .data(
        Data(whole.pieces.flatMap { piece in withUnsafeBytes(of: piece.bigEndian, Array.init) }))
    }
    return try value.binaryBytes()
  }
}
