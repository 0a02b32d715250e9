import Foundation
import WormholePropertyLists

/// Values at the limits of the format.
enum EdgeValues {
  static var all: [PropertyListValue] {
    integers + reals + dates + contents + sizes + [everyPlane, wide, .dictionary([:]), .array([])]
      + [.array([.array([]), .dictionary([:]), .dictionary(["": .array([])])])]
  }

  /// Around every power of two at which a width or a sign changes.
  static var integers: [PropertyListValue] {
    let powers = [0, 1, 7, 8, 15, 16, 31, 32, 62, 63].map { UInt64(1) << UInt64($0) }
    let positive = powers.flatMap { [$0 - 1, $0, $0 + 1] }.map { PropertyListValue($0) }
    let negative = powers.flatMap { [$0 - 1, $0, $0 + 1] }
      .compactMap { Int64(exactly: $0) }.map { PropertyListValue(-$0) }
    return positive + negative + [.integer(.min), .integer(.max), PropertyListValue(UInt64.max)]
  }

  static var reals: [PropertyListValue] {
    let reals: [Double] = [
      0, -0.0, 1, -1, 0.1, .pi, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity,
      -.infinity, .nan, 1e15, 1e16, 123_456_789.125,
    ]
    return reals.map(PropertyListValue.real)
  }

  /// Before 1970, around 2001, in 9999; whole microseconds that doubles represent exactly.
  static var dates: [PropertyListValue] {
    let seconds: [Double] = [
      -60_000_000_000, -978_307_201, -978_307_200, -978_307_199.5, -1, -0.5, 0, 0.5, 1,
      700_000_000.25, 63_113_904_000, 252_423_993_599,
    ]
    return seconds.map { .date(Date(timeIntervalSinceReferenceDate: $0)) }
  }

  /// Lengths around those at which a count no longer fits the marker or needs another byte.
  static var contents: [PropertyListValue] {
    let lengths = [0, 1, 14, 15, 16, 255, 256, 257, 65_535, 65_536]
    let ascii = lengths.map { PropertyListValue.string(String(repeating: "a", count: $0)) }
    let wide = lengths.map { PropertyListValue.string(String(repeating: "é", count: $0)) }
    let data = (lengths + [4_095, 4_096, 1 << 20]).map {
      PropertyListValue.data(Data(repeating: 7, count: $0))
    }
    let null: [PropertyListValue] = [
      "$null", ["$null": ["$null": ["a", "$null"], "b": ["$null": 1]]], "$nullable", ["CF$UIDs": 1],
    ]
    return ascii + wide + data + [.array(data + [.array(data), 1] + data)] + null
  }

  /// Files whose number of objects, or whose offset of the offset table, is around a power of 256:
  /// a width that is enough for all of them must also hold the number after the last.
  static var sizes: [PropertyListValue] {
    let counts = (253...257).map { count in
      PropertyListValue.array((0..<count).map { .integer($0) })
    }
    let lengths = Array(240...250) + Array(65_518...65_526)
    return counts + lengths.map { .data(Data(repeating: 1, count: $0)) }
  }

  /// Scalars from every plane, and both sides of the surrogates.
  static var everyPlane: PropertyListValue {
    var string = "\u{D7FF}\u{E000}\u{FFFE}\u{FFFF}\u{10000}\u{10FFFF}\u{FEFF}\u{0}"
    for value in stride(from: UInt32(0), through: 0x10FFFF, by: 251) {
      if let scalar = Unicode.Scalar(value) { string.unicodeScalars.append(scalar) }
    }
    return .string(string)
  }

  /// More objects than one byte can number, some of them shared.
  static var wide: PropertyListValue {
    .array((0..<700).map { ["number": .integer(Int64($0)), "name": "item \($0 % 50)"] })
  }
}
