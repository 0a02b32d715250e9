/// A black and white picture as a PNG file (W3C Portable Network Graphics, third edition): one bit
/// per pixel, stored without compression, so that no library is needed.
enum PNG {
  static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  /// Returns the file of a symbol, with its margin.
  ///
  /// - Parameters:
  ///   - symbol: The symbol to draw.
  ///   - scale: The pixels on each side of a module.
  static func bytes(of symbol: QRSymbol, scale: Int) -> [UInt8] {
    let margin = 4
    let side = (symbol.size + 2 * margin) * scale
    var lines: [UInt8] = []
    for pixelRow in 0..<side {
      let row = pixelRow / scale - margin
      let modules = symbol.rows.indices.contains(row) ? symbol.rows[row] : []
      lines.append(0)  // no filter
      for start in stride(from: 0, to: side, by: 8) {
        // A set bit is white.
        lines.append(
          (start..<min(start + 8, side)).reduce(0) { byte, pixel in
            let column = pixel / scale - margin
            let isDark = modules.indices.contains(column) && modules[column]
            return isDark ? byte : byte | 0x80 >> UInt8(pixel - start)
          })
      }
    }
    let header = big(side) + big(side) + [1, 0, 0, 0, 0]
    return signature + chunk("IHDR", header) + chunk("IDAT", zlib(lines)) + chunk("IEND", [])
  }

  private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
    let body = Array(type.utf8) + data
    return big(data.count) + body + big(Int(crc(body)))
  }

  /// Returns a zlib stream of stored blocks (RFC 1950, RFC 1951 section 3.2.4).
  private static func zlib(_ data: [UInt8]) -> [UInt8] {
    var stream: [UInt8] = [0x78, 0x01]
    var rest = data[...]
    repeat {
      let block = rest.prefix(0xFFFF)
      rest = rest.dropFirst(block.count)
      let length = UInt16(block.count)
      stream += [rest.isEmpty ? 1 : 0]
      for number in [length, ~length] { stream += [UInt8(number & 0xFF), UInt8(number >> 8)] }
      stream += block
    } while !rest.isEmpty
    return stream + big(Int(adler(data)))
  }

  static func big(_ number: Int) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  static func crc(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { crc, byte in
      (0..<8).reduce(crc ^ UInt32(byte)) { rest, _ in rest >> 1 ^ (rest & 1) * 0xEDB8_8320 }
    }
  }

  static func adler(_ bytes: [UInt8]) -> UInt32 {
    var first: UInt32 = 1
    var second: UInt32 = 0
    for byte in bytes {
      first = (first + UInt32(byte)) % 65_521
      second = (second + first) % 65_521
    }
    return second << 16 | first
  }
}
