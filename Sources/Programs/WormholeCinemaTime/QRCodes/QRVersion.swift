/// The size of a symbol, and the division of its codewords (ISO/IEC 18004, tables 1 and 9).
struct QRVersion: Equatable {
  /// From 1 to 40.
  let number: Int

  static let range = 1...40

  /// The number of modules on each side.
  var size: Int { 4 * number + 17 }

  /// The bits of the field with the number of bytes (table 3).
  var countBits: Int { number < 10 ? 8 : 16 }

  /// The centres of the alignment patterns, in both directions (annex E).
  var alignmentCentres: [Int] {
    guard number > 1 else { return [] }
    let count = number / 7 + 2
    let step = (number * 8 + count * 3 + 5) / (count * 4 - 4) * 2
    return [6] + (0..<(count - 1)).reversed().map { size - 7 - $0 * step }
  }

  /// The number of modules outside function patterns, in whole bytes.
  var codewords: Int {
    var modules = (16 * number + 128) * number + 64
    let centres = alignmentCentres.count
    // Patterns on the timing patterns share five modules with each of them.
    if centres > 0 { modules -= (25 * centres - 10) * centres - 55 }
    if number >= 7 { modules -= 36 }
    return modules / 8
  }

  /// Returns the division of the codewords into blocks, each with its own error correction.
  func blocks(_ level: QRCorrectionLevel) -> (count: Int, correctionEach: Int) {
    (
      Self.blockCounts[level.codes.row][number - 1],
      Self.correctionCodewords[level.codes.row][number - 1]
    )
  }

  /// Returns the number of bytes for data.
  func dataCodewords(_ level: QRCorrectionLevel) -> Int {
    let blocks = blocks(level)
    return codewords - blocks.count * blocks.correctionEach
  }

  // The rows are L, M, Q, H; the columns are versions.
  private static let correctionCodewords = [
    [
      7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28,
      28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30,
    ],
    [
      10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26,
      26, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    ],
    [
      13, 22, 18, 26, 18, 24, 18, 22, 20, 24, 28, 26, 24, 20, 30, 24, 28, 28, 26, 30,
      28, 30, 30, 30, 30, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30,
    ],
    [
      17, 28, 22, 16, 22, 28, 26, 26, 24, 28, 24, 28, 22, 24, 24, 30, 28, 28, 26, 28,
      30, 24, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30,
    ],
  ]
  private static let blockCounts = [
    [
      1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8,
      8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25,
    ],
    [
      1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16,
      17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38, 40, 43, 45, 47, 49,
    ],
    [
      1, 1, 2, 2, 4, 4, 6, 6, 8, 8, 8, 10, 12, 16, 12, 17, 16, 18, 21, 20,
      23, 23, 25, 27, 29, 34, 34, 35, 38, 40, 43, 45, 48, 51, 53, 56, 59, 62, 65, 68,
    ],
    [
      1, 1, 2, 4, 4, 4, 5, 6, 8, 8, 11, 11, 16, 16, 18, 16, 19, 21, 25, 25,
      25, 34, 30, 32, 35, 37, 40, 42, 45, 48, 51, 54, 57, 60, 63, 66, 70, 74, 77, 81,
    ],
  ]
}

/// The share of a symbol that may be damaged without making it unreadable.
enum QRCorrectionLevel: String, Sendable, CaseIterable {
  /// About 7 percent.
  case low = "L"
  /// About 15 percent.
  case medium = "M"
  /// About 25 percent.
  case quartile = "Q"
  /// About 30 percent.
  case high = "H"

  /// The row of this level in tables of L, M, Q and H, and the two bits of the format information
  /// (table 12).
  var codes: (row: Int, formatBits: Int) {
    switch self {
    case .low: (0, 0b01)
    case .medium: (1, 0b00)
    case .quartile: (2, 0b11)
    case .high: (3, 0b10)
    }
  }
}
