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
/// <8 bytes>            the offset of the head: bytes that lie elsewhere are not an annotation, even
///                      if they were copied from one
/// "wormhole"
/// <offset table> <trailer>
/// ```
package enum BinaryPropertyListAnnotation {
  /// The largest content.
  package static let maximumBytes = 255 - footerSize
  /// The largest growth of a document by an annotation; most of it for wider entries of the table.
  package static let maximumGrowth = headSize + 255 + 2 * 0xFFFF

  private static let headSize = 3
  private static let footerSize = 1 + 8 + 8

  /// Returns the end of a document with an annotation.
  ///
  /// - Parameters:
  ///   - content: The content of the annotation.
  ///   - document: A binary property list without one.
  /// - Returns: The number of bytes of the document that do not change, and the bytes after them;
  ///   nil if the document is not such a property list.
  package static func end(
    with content: [UInt8], of document: [UInt8]
  ) -> (unchanged: Int, bytes: [UInt8])? {
    precondition(content.count <= maximumBytes, "an annotation is small")
    return document.withUnsafeBytes { document in
      guard let trailer = trailer(of: document) else { return nil }
      let size = headSize + content.count + footerSize
      let tableOffset = trailer.tableOffset + size
      var width = trailer.offsetSize
      if !BinaryPropertyListTrailer.canCount(to: tableOffset, width: width) {
        // Every writer uses powers of two; other widths could grow beyond the maximum.
        guard width <= 2 else { return nil }
        width *= 2
      }
      var bytes = ByteBuffer(
        capacity: size + trailer.objectCount * width + BinaryPropertyListTrailer.size)
      bytes.append(0x4F)
      bytes.append(0x10)
      bytes.append(UInt8(content.count + footerSize))
      bytes.append(content)
      bytes.append(UInt8(trailer.offsetSize))
      bytes.append(bigEndian: UInt64(trailer.tableOffset))
      bytes.append(bigEndian: mark)
      appendTable(of: document, trailer, width: width, to: &bytes)
      bytes.append(
        UnsafeRawBufferPointer(rebasing: document.suffix(BinaryPropertyListTrailer.size)))
      let end = bytes.count - BinaryPropertyListTrailer.size
      bytes.put(UInt64(width), width: 1, at: end + 6)
      bytes.put(UInt64(tableOffset), width: 8, at: end + 24)
      return (trailer.tableOffset, bytes.bytes)
    }
  }

  /// Removes the annotation of a document, which is then, byte for byte, the original document.
  ///
  /// - Returns: The content of the annotation; nil, and the document unchanged, if there is none.
  /// - Complexity: Constant, apart from moving the entries of the offset table.
  package static func remove(from document: inout [UInt8]) -> [UInt8]? {
    guard let found = document.withUnsafeBytes({ find(in: $0) }) else { return nil }
    let content = Array(document[(found.start + headSize)..<(found.end - footerSize)])
    if let table = found.table {
      let tableEnd = document.count - BinaryPropertyListTrailer.size
      document.replaceSubrange(found.start..<tableEnd, with: table)
    } else {
      document.removeSubrange(found.start..<found.end)
    }
    document.setTrailer(offsetSize: found.width, tableOffset: found.start)
    return content
  }

  // MARK: Finding

  private struct Extent {
    let start: Int
    /// The beginning of the offset table.
    let end: Int
    /// The width of the entries without the annotation.
    let width: Int
    /// The offset table with entries of that width; nil if they already have it.
    let table: [UInt8]?
  }

  /// "wormhole", most significant byte first.
  private static let mark: UInt64 = 0x776F_726D_686F_6C65

  private static func trailer(of document: UnsafeRawBufferPointer) -> BinaryPropertyListTrailer? {
    guard document.count >= 8,
      document.bigEndian(at: 0) == BinaryPropertyListDocument.magic
    else { return nil }
    return BinaryPropertyListTrailer(of: document)
  }

  private static func find(in document: UnsafeRawBufferPointer) -> Extent? {
    guard let trailer = trailer(of: document) else { return nil }
    let end = trailer.tableOffset
    let footer = end - footerSize
    guard footer > BinaryPropertyListTrailer.headerSize + headSize,
      document.bigEndian(at: end - 8) == mark,
      let start = Int(exactly: document.bigEndian(at: footer + 1)),
      start > BinaryPropertyListTrailer.headerSize, start <= footer - headSize,
      document[start] == 0x4F, document[start + 1] == 0x10,
      Int(document[start + 2]) == end - start - headSize
    else { return nil }
    let width = Int(document[footer])
    guard (1...trailer.offsetSize).contains(width),
      BinaryPropertyListTrailer.canCount(to: start, width: width)
    else { return nil }
    guard width != trailer.offsetSize else {
      return Extent(start: start, end: end, width: width, table: nil)
    }
    var table = ByteBuffer(capacity: trailer.objectCount * width)
    guard appendTable(of: document, trailer, width: width, below: start, to: &table) else {
      return nil
    }
    return Extent(start: start, end: end, width: width, table: table.bytes)
  }

  /// - Returns: False if an entry is not below the limit.
  @discardableResult
  private static func appendTable(
    of document: UnsafeRawBufferPointer, _ trailer: BinaryPropertyListTrailer, width: Int,
    below limit: Int = .max, to bytes: inout ByteBuffer
  ) -> Bool {
    let old = trailer.offsetSize
    guard width != old else {
      let end = trailer.tableOffset + trailer.objectCount * old
      bytes.append(UnsafeRawBufferPointer(rebasing: document[trailer.tableOffset..<end]))
      return true
    }
    for number in 0..<trailer.objectCount {
      let offset = document.bigEndian(at: trailer.tableOffset + number * old, width: old)
      guard offset < UInt64(limit) else { return false }
      bytes.append(offset, width: width)
    }
    return true
  }
}

extension [UInt8] {
  fileprivate mutating func setTrailer(offsetSize: Int, tableOffset: Int) {
    let trailer = count - BinaryPropertyListTrailer.size
    self[trailer + 6] = UInt8(offsetSize)
    withUnsafeMutableBytes {
      $0.storeBytes(
        of: UInt64(tableOffset).bigEndian, toByteOffset: trailer + 24, as: UInt64.self)
    }
  }
}
