/// A QR code by ISO/IEC 18004: version 2, correction level L, mask 0. It holds 32 bytes in one
/// block, enough for every ticket: other versions, blocks and masks are left out.
struct QRCode {
  /// The number of modules on each side.
  static let size = 25
  private static let maximumBytes = 32
  /// The format information of level L with mask 0 (table C.1).
  private static let format = 0b111_0111_1100_0100

  /// The modules, row by row; true is dark, nil is not drawn yet.
  private var modules = Array(repeating: [Bool?](repeating: nil, count: size), count: size)

  /// The rows of modules, without the surrounding light margin; true is dark.
  var rows: [[Bool]] { modules.map { $0.map { $0 == true } } }

  /// - Returns: Nil for a text of more than 32 bytes of UTF-8.
  init?(_ text: String) {
    guard text.utf8.count <= Self.maximumBytes else { return nil }
    drawFunctionPatterns()
    let data = Self.data(Array(text.utf8))
    draw(data + Self.correction(of: data))
  }

  /// The code in a light margin of two modules, which most readers accept and a watch has room for.
  var lines: [String] {
    let margin = 2
    return HalfBlocks.lines(
      (-margin..<Self.size + margin).map { row in
        (-margin..<Self.size + margin).map { column in
          let isInside = modules.indices.contains(row) && modules.indices.contains(column)
          return !isInside || modules[row][column] == false
        }
      })
  }

  // MARK: Codewords

  /// Returns 34 codewords: the mode "bytes", the count, the bytes, an end, and padding (7.4).
  private static func data(_ bytes: [UInt8]) -> [UInt8] {
    var codewords: [UInt8] = []
    // The mode takes half a byte, so all bytes after it are shifted by half a byte.
    var half: UInt8 = 4
    for byte in [UInt8(bytes.count)] + bytes {
      codewords.append(half << 4 | byte >> 4)
      half = byte & 15
    }
    codewords.append(half << 4)
    let padding = 0..<maximumBytes - bytes.count
    return codewords + padding.map { $0 % 2 == 0 ? 0b1110_1100 : 0b0001_0001 }
  }

  /// Returns the ten Reed–Solomon codewords: the remainder of a division by the generator
  /// polynomial over GF(256), whose coefficients are listed (7.5.2, annex A).
  private static func correction(of data: [UInt8]) -> [UInt8] {
    let generator: [UInt8] = [216, 194, 159, 111, 199, 94, 95, 113, 157, 193]
    return data.reduce([UInt8](repeating: 0, count: generator.count)) { remainder, byte in
      let factor = byte ^ remainder[0]
      return zip(remainder.dropFirst() + [0], generator).map { $0 ^ product($1, factor) }
    }
  }

  private static func product(_ first: UInt8, _ second: UInt8) -> UInt8 {
    let product = (0..<8).reversed().reduce(0) { product, bit in
      (product << 1) ^ ((product >> 7) * 0x11D) ^ (second >> bit & 1 == 1 ? Int(first) : 0)
    }
    return UInt8(product)
  }

  // MARK: Drawing

  private mutating func set(_ row: Int, _ column: Int, to isDark: Bool) {
    guard modules.indices.contains(row), modules.indices.contains(column) else { return }
    modules[row][column] = isDark
  }

  private mutating func drawFunctionPatterns() {
    let size = Self.size
    for index in 0..<size {
      set(6, index, to: index % 2 == 0)
      set(index, 6, to: index % 2 == 0)
    }
    // Three finders with light separators, and the alignment pattern.
    for (row, column) in [(3, 3), (3, size - 4), (size - 4, 3)] {
      drawRings(row, column, radius: 4, light: [2, 4])
    }
    drawRings(size - 7, size - 7, radius: 2, light: [1])
    // The format information twice, in opposite directions past the timing patterns; a dark module.
    for bit in 0..<15 {
      let isDark = Self.format >> bit & 1 == 1
      let place = bit < 6 ? bit : bit < 8 ? bit + 1 : bit == 8 ? 7 : 14 - bit
      if bit < 8 { set(place, 8, to: isDark) } else { set(8, place, to: isDark) }
      if bit < 8 { set(8, size - 1 - bit, to: isDark) } else { set(size - 15 + bit, 8, to: isDark) }
    }
    set(size - 8, 8, to: true)
  }

  private mutating func drawRings(_ row: Int, _ column: Int, radius: Int, light: [Int]) {
    for down in -radius...radius {
      for right in -radius...radius {
        set(row + down, column + right, to: !light.contains(max(abs(down), abs(right))))
      }
    }
  }

  /// Draws codewords in columns of two from the right, alternately up and down, around the function
  /// patterns; the mask inverts every other module, like a chessboard (7.7.3, 7.8.2).
  private mutating func draw(_ codewords: [UInt8]) {
    var index = 0
    var goesUp = true
    // The vertical timing pattern has its own column.
    for right in [24, 22, 20, 18, 16, 14, 12, 10, 8, 5, 3, 1] {
      for step in 0..<Self.size {
        let row = goesUp ? Self.size - 1 - step : step
        for column in [right, right - 1] where modules[row][column] == nil {
          let isSet =
            index < 8 * codewords.count && codewords[index / 8] >> (7 - index % 8) & 1 == 1
          modules[row][column] = isSet != ((row + column) % 2 == 0)
          index += 1
        }
      }
      goesUp.toggle()
    }
  }
}

/// Dots as text, two rows of them in a line of characters.
enum HalfBlocks {
  /// - Parameter dots: Rows of equal length; true is in the color of the letters.
  static func lines(_ dots: [[Bool]]) -> [String] {
    stride(from: 0, to: dots.count, by: 2).map { row in
      let below = row + 1 < dots.count ? dots[row + 1] : dots[row].map { _ in false }
      return String(zip(dots[row], below).map { $0 ? ($1 ? "█" : "▀") : ($1 ? "▄" : " ") })
    }
  }
}
