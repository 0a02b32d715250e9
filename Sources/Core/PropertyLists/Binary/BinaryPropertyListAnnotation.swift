/// A few bytes in a binary property list that no parser reads: they lie between the last object and
/// the offset table, and no entry of the table points to them.
///
/// The format allows such bytes: every parser finds the table by the trailer, and the objects by the
/// table. So a document with an annotation is as valid as without one, has the same content for
/// Foundation, Python and every other program, and a program that writes the content again drops the
/// annotation. An annotation is found through the trailer alone, whatever the size of the document.
///
/// ```
/// 4F 10 <n>            the head of a data object of n bytes, for people who look at the file
/// <content>
/// <1 byte>             the width of the table's entries without the annotation
/// <8 bytes>            the offset of the head: bytes that lie elsewhere are no annotation, even if
///                      they were copied from one
/// "wormhole"
/// <offset table> <trailer>
/// ```
package enum BinaryPropertyListAnnotation {
  /// The largest content.
  package static let maximumBytes = 255 - footerSize
  /// The most that a document grows by an annotation; most of it for wider entries of the table.
  package static let maximumGrowth = headSize + 255 + 2 * 0xFFFF

  private static let mark = Array("wormhole".utf8)
  private static let headSize = 3
  private static let footerSize = 1 + 8 + 8

  /// Returns the end of a document with an annotation.
  ///
  /// - Parameters:
  ///   - content: The content of the annotation.
  ///   - document: A binary property list without one.
  /// - Returns: The number of bytes of the document that stay as they are, and the bytes after
  ///   them; nil for a document that is not such a property list.
  package static func end(
    with content: [UInt8], of document: [UInt8]
  ) -> (unchanged: Int, bytes: [UInt8])? {
    precondition(content.count <= maximumBytes, "an annotation is small")
    guard document.starts(with: "bplist00".utf8),
      let trailer = BinaryPropertyListTrailer(of: document)
    else { return nil }
    let size = headSize + content.count + footerSize
    let tableOffset = trailer.tableOffset + size
    var width = trailer.offsetSize
    if !BinaryPropertyListTrailer.canCount(to: tableOffset, width: width) {
      // Every writer uses powers of two; other widths could grow by more than the most.
      guard width <= 2 else { return nil }
      width *= 2
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(
      size + trailer.objectCount * width + BinaryPropertyListTrailer.size)
    bytes += [0x4F, 0x10, UInt8(content.count + footerSize)]
    bytes += content
    bytes.append(UInt8(trailer.offsetSize))
    bytes.appendBigEndian(UInt64(trailer.tableOffset), width: 8)
    bytes += mark
    appendTable(of: document, trailer, width: width, to: &bytes)
    bytes += document.suffix(BinaryPropertyListTrailer.size)
    bytes.setTrailer(offsetSize: width, tableOffset: tableOffset)
    return (trailer.tableOffset, bytes)
  }

  /// Removes the annotation of a document, which is then, byte for byte, the one without it.
  ///
  /// - Returns: The content of the annotation; nil, and the document as it was, if there is none.
  /// - Complexity: Constant, and the entries of the offset table are moved.
  package static func remove(from document: inout [UInt8]) -> [UInt8]? {
    guard document.starts(with: "bplist00".utf8),
      let trailer = BinaryPropertyListTrailer(of: document)
    else { return nil }
    let end = trailer.tableOffset
    let footer = end - footerSize
    guard footer > BinaryPropertyListTrailer.headerSize + headSize,
      document[(end - mark.count)..<end].elementsEqual(mark),
      let start = Int(exactly: document.bigEndian(at: footer + 1, width: 8)),
      start > BinaryPropertyListTrailer.headerSize, start <= footer - headSize,
      document[start] == 0x4F, document[start + 1] == 0x10,
      Int(document[start + 2]) == end - start - headSize
    else { return nil }
    let width = Int(document[footer])
    guard (1...trailer.offsetSize).contains(width),
      BinaryPropertyListTrailer.canCount(to: start, width: width)
    else { return nil }
    let content = Array(document[(start + headSize)..<footer])
    if width == trailer.offsetSize {
      document.removeSubrange(start..<end)
    } else {
      var table: [UInt8] = []
      guard appendTable(of: document, trailer, width: width, below: start, to: &table) else {
        return nil
      }
      let tableEnd = end + trailer.objectCount * trailer.offsetSize
      document.replaceSubrange(start..<tableEnd, with: table)
    }
    document.setTrailer(offsetSize: width, tableOffset: start)
    return content
  }

  /// - Returns: False if an entry is not below the limit.
  @discardableResult
  private static func appendTable(
    of document: [UInt8], _ trailer: BinaryPropertyListTrailer, width: Int, below limit: Int = .max,
    to bytes: inout [UInt8]
  ) -> Bool {
    let old = trailer.offsetSize
    guard width != old else {
      bytes += document[trailer.tableOffset..<(trailer.tableOffset + trailer.objectCount * old)]
      return true
    }
    for number in 0..<trailer.objectCount {
      let offset = document.bigEndian(at: trailer.tableOffset + number * old, width: old)
      guard offset < UInt64(limit) else { return false }
      bytes.appendBigEndian(offset, width: width)
    }
    return true
  }
}

extension [UInt8] {
  fileprivate mutating func setTrailer(offsetSize: Int, tableOffset: Int) {
    let trailer = count - BinaryPropertyListTrailer.size
    self[trailer + 6] = UInt8(offsetSize)
    for byte in 0..<8 {
      self[trailer + 24 + byte] = UInt8(truncatingIfNeeded: tableOffset >> (8 * (7 - byte)))
    }
  }
}
