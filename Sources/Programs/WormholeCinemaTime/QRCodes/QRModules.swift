/// The modules of a symbol while it is drawn (ISO/IEC 18004, 6.3 and 7.7 to 7.10).
struct QRModules {
  let version: QRVersion
  /// The rows of modules; true is dark.
  private(set) var isDark: [[Bool]]
  /// The modules that carry no data.
  private var isFunction: [[Bool]]

  var size: Int { version.size }

  /// Draws the function patterns; the format information is drawn later.
  init(_ version: QRVersion) {
    self.version = version
    let empty = [Bool](repeating: false, count: version.size)
    isDark = Array(repeating: empty, count: version.size)
    isFunction = isDark
    drawTiming()
    drawFinders()
    drawAlignments()
    drawFormat(0)
    drawVersion()
  }

  private mutating func set(_ row: Int, _ column: Int, _ dark: Bool) {
    guard (0..<size).contains(row), (0..<size).contains(column) else { return }
    isDark[row][column] = dark
    isFunction[row][column] = true
  }

  // MARK: Function patterns

  private mutating func drawTiming() {
    for index in 0..<size {
      set(6, index, index % 2 == 0)
      set(index, 6, index % 2 == 0)
    }
  }

  /// Draws three corners: rings around a square, and the light separator.
  private mutating func drawFinders() {
    for (row, column) in [(3, 3), (3, size - 4), (size - 4, 3)] {
      for down in -4...4 {
        for right in -4...4 {
          let ring = max(abs(down), abs(right))
          set(row + down, column + right, ring != 2 && ring != 4)
        }
      }
    }
  }

  private mutating func drawAlignments() {
    let centres = version.alignmentCentres
    guard let last = centres.last else { return }
    for row in centres {
      for column in centres {
        let isAtFinder = [[6, 6], [6, last], [last, 6]].contains([row, column])
        guard !isAtFinder else { continue }
        for down in -2...2 {
          for right in -2...2 { set(row + down, column + right, max(abs(down), abs(right)) != 1) }
        }
      }
    }
  }

  /// Draws 15 bits beside the finders, twice, and the module that is always dark.
  mutating func drawFormat(_ information: Int) {
    for bit in 0..<15 {
      let dark = information >> bit & 1 == 1
      // Around the upper left finder, where the timing patterns take one place.
      switch bit {
      case 0...5: set(bit, 8, dark)
      case 6: set(7, 8, dark)
      case 7: set(8, 8, dark)
      case 8: set(8, 7, dark)
      default: set(8, 14 - bit, dark)
      }
      if bit < 8 { set(8, size - 1 - bit, dark) } else { set(size - 15 + bit, 8, dark) }
    }
    set(size - 8, 8, true)
  }

  /// Draws 18 bits beside two finders.
  private mutating func drawVersion() {
    guard version.number >= 7 else { return }
    let bits = QRInformation.version(version.number)
    for bit in 0..<18 {
      let dark = bits >> bit & 1 == 1
      set(bit / 3, size - 11 + bit % 3, dark)
      set(size - 11 + bit % 3, bit / 3, dark)
    }
  }

  // MARK: Data

  /// Draws in columns of two, from the right, up and down in turn, around the function patterns.
  mutating func draw(_ codewords: [UInt8]) {
    var index = 0
    var goesUp = true
    // Skips the column of the vertical timing pattern.
    for right in [Array(stride(from: size - 1, to: 6, by: -2)), [5, 3, 1]].joined() {
      for step in 0..<size {
        let row = goesUp ? size - 1 - step : step
        for column in [right, right - 1] where !isFunction[row][column] {
          guard index < 8 * codewords.count else { continue }
          isDark[row][column] = codewords[index / 8] >> (7 - index % 8) & 1 == 1
          index += 1
        }
      }
      goesUp.toggle()
    }
  }

  /// Inverts the data modules for which a mask's condition holds.
  mutating func apply(_ mask: QRMask) {
    for row in 0..<size {
      for column in 0..<size where !isFunction[row][column] && mask.inverts(row, column) {
        isDark[row][column].toggle()
      }
    }
  }
}

/// The information of a symbol about itself, with error-correcting bits (ISO/IEC 18004, annexes C
/// and D).
enum QRInformation {
  static func format(_ level: QRCorrectionLevel, _ mask: QRMask) -> Int {
    let data = level.codes.formatBits << 3 | mask.number
    return (data << 10 | remainder(of: data, bits: 10, generator: 0x537)) ^ 0x5412
  }

  static func version(_ number: Int) -> Int {
    number << 12 | remainder(of: number, bits: 12, generator: 0x1F25)
  }

  private static func remainder(of data: Int, bits: Int, generator: Int) -> Int {
    (0..<bits).reduce(data) { rest, _ in (rest << 1) ^ ((rest >> (bits - 1)) * generator) }
  }
}
