/// The codewords of a symbol in drawing order: data in byte mode, padded, divided into blocks, each
/// with its error correction, interleaved (ISO/IEC 18004, 7.4 to 7.6).
enum QRCodewords {
  /// Returns the smallest version that holds a number of bytes, or nil if none does.
  static func version(forBytes count: Int, _ level: QRCorrectionLevel) -> QRVersion? {
    QRVersion.range.lazy.map { QRVersion(number: $0) }.first { version in
      4 + version.countBits + 8 * count <= 8 * version.dataCodewords(level)
        && count < 1 << version.countBits
    }
  }

  static func all(_ bytes: [UInt8], _ version: QRVersion, _ level: QRCorrectionLevel) -> [UInt8] {
    interleaved(data(bytes, version, level), version, level)
  }

  private static func data(
    _ bytes: [UInt8], _ version: QRVersion, _ level: QRCorrectionLevel
  ) -> [UInt8] {
    let capacity = version.dataCodewords(level)
    var bits: [Bool] = []
    func append(_ value: Int, count: Int) {
      bits += (0..<count).reversed().map { value >> $0 & 1 == 1 }
    }
    append(0b0100, count: 4)  // byte mode
    append(bytes.count, count: version.countBits)
    for byte in bytes { append(Int(byte), count: 8) }
    append(0, count: min(4, 8 * capacity - bits.count))  // the terminator
    // Filled up to whole bytes with zeros.
    var codewords = stride(from: 0, to: bits.count, by: 8).map { start -> UInt8 in
      (start..<start + 8).reduce(0) { $0 << 1 | ($1 < bits.count && bits[$1] ? 1 : 0) }
    }
    for padding in 0..<(capacity - codewords.count) {
      codewords.append(padding % 2 == 0 ? 0b1110_1100 : 0b0001_0001)
    }
    return codewords
  }

  private static func interleaved(
    _ data: [UInt8], _ version: QRVersion, _ level: QRCorrectionLevel
  ) -> [UInt8] {
    let (count, correctionEach) = version.blocks(level)
    let correction = ReedSolomon(codewords: correctionEach)
    let short = data.count / count
    let longBlocks = data.count % count
    var rest = data[...]
    // The short blocks come first; the others have one more codeword.
    let blocks = (0..<count).map { index in
      let block = rest.prefix(index < count - longBlocks ? short : short + 1)
      rest = rest.dropFirst(block.count)
      return Array(block)
    }
    let corrections = blocks.map { correction.codewords(for: $0) }
    return column(by: short + 1, of: blocks) + column(by: correctionEach, of: corrections)
  }

  /// Returns the first codeword of each block, then the second of each, and so on.
  private static func column(by length: Int, of blocks: [[UInt8]]) -> [UInt8] {
    (0..<length).flatMap { index in blocks.compactMap { index < $0.count ? $0[index] : nil } }
  }
}
