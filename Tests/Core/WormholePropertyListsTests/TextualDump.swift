import Foundation
import WormholePropertyLists

/// Returns a value as one line of words, a format that the Python script of the differential tests
/// shares.
///
/// It is a prefix notation: `S` hex of UTF-8, `I` decimal, `R` bits of the double, `B` 0 or 1, `T`
/// microseconds since 2001, `X` hex of data, `A` count and elements, `D` count and pairs in the
/// order of the keys' UTF-8 bytes.
func textualDump(_ value: PropertyListValue) -> String {
  var words: [String] = []
  dump(value, into: &words)
  return words.joined(separator: " ")
}

private func dump(_ value: PropertyListValue, into words: inout [String]) {
  switch value {
  case .string(let string): words.append("S" + hex(string.utf8))
  case .integer(let integer): words.append("I\(integer)")
  case .unsigned(let integer): words.append("I\(integer)")
  case .real(let real): words.append("R" + String(real.bitPattern, radix: 16))
  case .boolean(let boolean): words.append(boolean ? "B1" : "B0")
  case .date(let date):
    words.append("T\(microseconds(of: date))")
  case .data(let data): words.append("X" + hex(data))
  case .array(let array):
    words.append("A\(array.count)")
    for element in array { dump(element, into: &words) }
  case .dictionary(let dictionary):
    words.append("D\(dictionary.count)")
    let sorted = dictionary.sorted { Array($0.key.utf8).lexicographicallyPrecedes($1.key.utf8) }
    for (key, element) in sorted {
      dump(.string(key), into: &words)
      dump(element, into: &words)
    }
  }
}

/// In integers, because the microseconds of a distant date exceed a double's exact range.
private func microseconds(of date: Date) -> Int {
  let seconds = date.timeIntervalSinceReferenceDate.rounded(.down)
  let fraction = date.timeIntervalSinceReferenceDate - seconds
  return Int(seconds) * 1_000_000 + Int((fraction * 1_000_000).rounded())
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  for byte in bytes {
    text.append(digits[Int(byte >> 4)])
    text.append(digits[Int(byte & 15)])
  }
  return String(decoding: text, as: UTF8.self)
}

func bytes(ofHex text: some StringProtocol) -> [UInt8] {
  var bytes: [UInt8] = []
  var high: UInt8?
  for character in text.utf8 {
    let digit = character <= UInt8(ascii: "9") ? character & 15 : (character & 15) + 9
    if let first = high {
      bytes.append(first << 4 | digit)
      high = nil
    } else {
      high = digit
    }
  }
  return bytes
}
