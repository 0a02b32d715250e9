/// The error correction of QR codes: Reed–Solomon over GF(256) with the polynomial
/// x⁸ + x⁴ + x³ + x² + 1 (ISO/IEC 18004, 7.5.2).
struct ReedSolomon {
  /// The generator's coefficients, highest first, without the leading 1.
  private let generator: [UInt8]

  /// - Parameter count: The number of codewords to compute.
  init(codewords count: Int) {
    var generator = [UInt8](repeating: 0, count: count - 1) + [1]
    var root: UInt8 = 1
    // The product of (x - 2⁰) … (x - 2ⁿ⁻¹).
    for _ in 0..<count {
      for index in generator.indices {
        generator[index] = Self.multiply(generator[index], root)
        if index + 1 < count { generator[index] ^= generator[index + 1] }
      }
      root = Self.multiply(root, 2)
    }
    self.generator = generator
  }

  /// Returns the remainder of the data divided by the generator.
  func codewords(for data: some Sequence<UInt8>) -> [UInt8] {
    var remainder = [UInt8](repeating: 0, count: generator.count)
    for byte in data {
      let factor = byte ^ remainder.removeFirst()
      remainder.append(0)
      for index in remainder.indices { remainder[index] ^= Self.multiply(generator[index], factor) }
    }
    return remainder
  }

  private static func multiply(_ first: UInt8, _ second: UInt8) -> UInt8 {
    var product = 0
    for bit in (0..<8).reversed() {
      product = (product << 1) ^ ((product >> 7) * 0x11D)
      if second >> bit & 1 == 1 { product ^= Int(first) }
    }
    return UInt8(product)
  }
}
