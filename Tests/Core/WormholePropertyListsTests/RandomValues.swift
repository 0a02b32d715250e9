import Foundation
import WormholePropertyLists
import WormholeTestSupport

/// The limits of random values, so that the other side of a comparison can hold them too.
struct RandomProfile {
  /// Characters that XML 1.0 does not have.
  var controlCharacters = true
  var carriageReturns = true
  /// U+FEFF, which CFPropertyList drops from the start of a string in XML.
  var byteOrderMarks = true
  /// Seconds since 2001.
  var dates: ClosedRange<Int> = -60_000_000_000...252_000_000_000
  var dateFractions = true
  var negativeZero = true
  var nanPayloads = true

  static let binary = RandomProfile()
  static let xml = RandomProfile(
    controlCharacters: false, dateFractions: false, nanPayloads: false)
}

struct RandomValues {
  var generator: SeededGenerator
  let profile: RandomProfile

  init(seed: UInt64, _ profile: RandomProfile) {
    generator = SeededGenerator(seed: seed)
    self.profile = profile
  }

  mutating func value(size: Int = 24) -> PropertyListValue {
    var size = size
    return value(&size, depth: 0)
  }

  private mutating func value(_ size: inout Int, depth: Int) -> PropertyListValue {
    size -= 1
    let kinds = size > 0 && depth < 12 ? 11 : 7
    switch Int.random(in: 0..<kinds, using: &generator) {
    case 0: return .string(string())
    case 1: return integer()
    case 2: return .real(real())
    case 3: return .boolean(Bool.random(using: &generator))
    case 4: return .date(date())
    case 5: return .data(data())
    case 6: return .string(commonWord())
    case 7, 8:
      var elements: [PropertyListValue] = []
      for _ in 0..<Int.random(in: 0...6, using: &generator) {
        elements.append(value(&size, depth: depth + 1))
      }
      return .array(elements)
    default:
      var entries: [String: PropertyListValue] = [:]
      for _ in 0..<Int.random(in: 0...6, using: &generator) {
        let key = Bool.random(using: &generator) ? commonWord() : string()
        entries[key] = value(&size, depth: depth + 1)
      }
      return .dictionary(entries)
    }
  }

  /// Returns one of a few words, so that writers have something to share.
  private mutating func commonWord() -> String {
    ["title", "count", "", "é", "e\u{301}x", "sender", "日本語", "0123456789abcdef"]
      .randomElement(using: &generator) ?? ""
  }

  mutating func integer() -> PropertyListValue {
    let bits = UInt64.random(in: 0...UInt64.max, using: &generator)
    let width = UInt64.random(in: 0..<64, using: &generator)
    let number = bits >> width
    return Bool.random(using: &generator)
      ? PropertyListValue(number) : .integer(0 &- Int64(number >> 1))
  }

  private mutating func real() -> Double {
    let special: [Double] = [
      0.0, 1, -1, 0.1, 1e300, .leastNonzeroMagnitude, .infinity, -.infinity, .nan, .pi,
    ]
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: return special.randomElement(using: &generator) ?? 0
    case 1: return profile.negativeZero ? -0.0 : 0
    case 2: return Double(Int.random(in: -1000...1000, using: &generator)) / 8
    default:
      let real = Double(bitPattern: generator.next())
      return real.isNaN && !profile.nanPayloads ? .nan : real
    }
  }

  private mutating func date() -> Date {
    let seconds = Double(Int.random(in: profile.dates, using: &generator))
    // Binary fractions that are also whole microseconds, which is Python's precision.
    let fraction =
      profile.dateFractions ? Double(Int.random(in: 0..<64, using: &generator)) / 64 : 0
    return Date(timeIntervalSinceReferenceDate: seconds + fraction)
  }

  private mutating func data() -> Data {
    let count = Int.random(in: 0...40, using: &generator)
    return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  mutating func string() -> String {
    var string = ""
    for _ in 0..<Int.random(in: 0...20, using: &generator) {
      string.unicodeScalars.append(scalar())
    }
    return string
  }

  private mutating func scalar() -> Unicode.Scalar {
    let edges: [UInt32] = [
      0, 1, 9, 10, 13, 0x1F, 0x20, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD,
      0xFFFE, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF,
    ]
    let candidate: UInt32 =
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: edges.randomElement(using: &generator) ?? 0
      case 1: UInt32.random(in: 0...0x10FFFF, using: &generator)
      default: UInt32.random(in: 0x20..<0x7F, using: &generator)
      }
    guard let scalar = Unicode.Scalar(candidate), isAllowed(scalar) else { return "?" }
    return scalar
  }

  private func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 9, 10: true
    case 13: profile.carriageReturns
    case 0xFEFF: profile.byteOrderMarks
    case ..<0x20, 0xFFFE, 0xFFFF: profile.controlCharacters
    default: true
    }
  }
}
