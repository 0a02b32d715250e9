import Foundation
import WormholePropertyLists
import WormholeTestSupport

/// Random property lists with everything that has broken a JSON writer before.
struct RandomValue {
  var generator: SeededGenerator

  mutating func value(depth: Int = 4) -> PropertyListValue {
    switch Int.random(in: 0..<(depth > 0 ? 12 : 8), using: &generator) {
    case 0: .string(string())
    case 1: .integer(integer())
    case 2: .unsigned(UInt64.random(in: UInt64(Int64.max) + 1 ... .max, using: &generator))
    case 3, 4: .real(real())
    case 5: .boolean(Bool.random(using: &generator))
    case 6: .date(date())
    case 7: .data(data())
    case 8, 9: .array((0..<count()).map { _ in value(depth: depth - 1) })
    case 10: .dictionary([loneKey(): value(depth: depth - 1)])
    default:
      .dictionary(
        Dictionary(
          (0..<count()).map { _ in (string(), value(depth: depth - 1)) },
          uniquingKeysWith: { first, _ in first }))
    }
  }

  private mutating func count() -> Int { Int.random(in: 0...5, using: &generator) }

  private mutating func loneKey() -> String {
    let dollars = String(repeating: "$", count: Int.random(in: 0...3, using: &generator))
    let words = ["data", "date", "real", "ref", ""]
    return dollars + words[Int.random(in: 0..<words.count, using: &generator)]
  }

  private mutating func string() -> String {
    let scalars: [Unicode.Scalar] = [
      "\"", "\\", "/", "\n", "\t", "\u{0}", "\u{1F}", "\u{7F}", "a", "é", "e", "f", "\u{301}",
      "\u{2028}", "\u{FFFF}", "\u{1F600}", "$", "日",
    ]
    var text = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...8, using: &generator) {
      text.append(scalars[Int.random(in: 0..<scalars.count, using: &generator)])
    }
    return String(text)
  }

  private mutating func integer() -> Int64 {
    let edges: [Int64] = [0, 1, -1, .min, .max, 1 << 53, (1 << 53) + 1]
    return Bool.random(using: &generator)
      ? edges[Int.random(in: 0..<edges.count, using: &generator)]
      : Int64(truncatingIfNeeded: generator.next())
  }

  /// Every bit pattern is equally likely, after the famous ones.
  private mutating func real() -> Double {
    let edges = [
      0, -0.0, 1, 0.1, 1e16, 1e22, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .infinity,
      .nan,
    ]
    return Bool.random(using: &generator)
      ? edges[Int.random(in: 0..<edges.count, using: &generator)]
      : Double(bitPattern: generator.next())
  }

  private mutating func date() -> Date {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: Date(timeIntervalSinceReferenceDate: real())
    case 1: Date(timeIntervalSinceReferenceDate: .random(in: -1...1, using: &generator))
    case 2: Date(timeIntervalSinceReferenceDate: .random(in: -7e10...3e11, using: &generator))
    default:
      Date(timeIntervalSinceReferenceDate: .random(in: 7e8...9e8, using: &generator).rounded())
    }
  }

  private mutating func data() -> Data {
    Data(
      (0..<Int.random(in: 0...7, using: &generator)).map { _ in
        UInt8.random(in: 0 ... .max, using: &generator)
      })
  }
}

/// Returns a text that two values share only if they are the same to the last bit. This equality is
/// independent, because other tests test that of `PropertyListValue`.
func fingerprint(_ value: PropertyListValue) -> String {
  switch value {
  case .string(let text): "s\(Array(text.utf8))"
  case .integer(let integer): "i\(integer)"
  case .unsigned(let integer): "i\(integer)"
  case .real(let real): "r\(fingerprint(real))"
  case .boolean(let boolean): "b\(boolean)"
  // The two zeros are one date.
  case .date(let date): "d\(fingerprint(date.timeIntervalSinceReferenceDate + 0))"
  case .data(let data): "x\(Array(data))"
  case .array(let elements): "[\(elements.map(fingerprint).joined(separator: ","))]"
  case .dictionary(let members):
    "{\(members.map { "\(Array($0.key.utf8)):\(fingerprint($0.value))" }.sorted())}"
  }
}

private func fingerprint(_ real: Double) -> String {
  real.isNaN ? "nan" : String(real.bitPattern, radix: 16)
}
