import Foundation
import WormholePropertyLists
import WormholeTestSupport

/// A generator that damages good files in ways that reach deep into a parser.
struct Mutator {
  var generator: SeededGenerator

  private static let interesting: [UInt8] = [
    0x00, 0x01, 0x08, 0x09, 0x0F, 0x10, 0x13, 0x14, 0x22, 0x23, 0x33, 0x3C, 0x3E, 0x40, 0x4F, 0x50,
    0x5F, 0x60, 0x61, 0x6F, 0x7F, 0x80, 0xA0, 0xA1, 0xAF, 0xC0, 0xD0, 0xD1, 0xDF, 0xD8, 0xDC, 0xFE,
    0xFF,
  ]

  private static let xmlPieces: [String] = [
    "<array>", "</array>", "<dict>", "</dict>", "<key>", "</key>", "<key>a</key>", "<string>",
    "</string>", "<integer>", "</integer>", "<integer>-0x1F</integer>", "<real>", "</real>",
    "<true/>",
    "<false/>", "<true>", "</true>", "<data>", "</data>", "<date>", "2001-01-01T00:00:00Z",
    "</date>",
    "<!--", "-->", "<![CDATA[", "]]>", "&lt;", "&#x41;", "&#", ";", "&", "<", ">", "/", "<?xml",
    "?>",
    "encoding=\"UTF-8\"", "<!DOCTYPE", "[", "]", "<plist>", "</plist>", "<array/>", "<dict/>",
    "nan",
    "+infinity", "é", "\u{FEFF}", "\u{1}", "=", "\n", " ",
  ]

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  /// Returns a file to judge: a good one with a few changes, or a completely random one.
  mutating func input(from corpus: [[UInt8]]) -> [UInt8] {
    guard Int.random(in: 0..<4, using: &generator) > 0 else { return randomBinary() }
    let file = corpus.randomElement(using: &generator) ?? []
    return mutate(file, other: corpus.randomElement(using: &generator) ?? [])
  }

  /// Returns a well-framed file whose objects refer to each other at random: cycles, shared and
  /// deep containers, keys of every type, sometimes a foreign type.
  private mutating func randomBinary() -> [UInt8] {
    var file = HandMadeBinary()
    file.offsetSize = Int.random(in: 2...8, using: &generator)
    file.referenceSize = Int.random(in: 1...8, using: &generator)
    let count = Int.random(in: 1...100, using: &generator)
    // Nearly all arrays: values that grow with every level.
    let isBomb = Int.random(in: 0..<6, using: &generator) == 0
    let kinds = isBomb ? [0, 1, 2, 3, 4, 5, 6, 11, 15, 19] : Array(0..<20)
    // References mostly point downwards, because otherwise nearly every file would be a cycle.
    let isOrderly = Int.random(in: 0..<8, using: &generator) > 0
    for number in 0..<count {
      let kind = kinds.randomElement(using: &generator) ?? 0
      addRandomObject(kind, to: &file, below: isOrderly ? number : count)
    }
    file.top = isOrderly ? count - 1 : Int.random(in: 0..<count, using: &generator)
    return file.bytes()
  }

  private mutating func addRandomObject(
    _ kind: Int, to file: inout HandMadeBinary, below limit: Int
  ) {
    let isContainer = kind < 11 && limit > 0
    if isContainer {
      let isDictionary = kind > 6
      let length = Int.random(in: 0...(isDictionary ? 3 : 5), using: &generator)
      let keys = (0..<length).map { _ in randomKey(of: file, below: limit) }
      let values = (0..<length).map { _ in
        Int.random(in: max(0, limit - 9)..<limit, using: &generator)
      }
      file.container(isDictionary ? 0xD0 : 0xA0, isDictionary ? keys + values : values)
      return
    }
    switch kind {
    case 11...13: file.string(String(UInt8.random(in: 0...255, using: &generator)))
    case 14:
      file.utf16String((0..<3).map { _ in UInt16.random(in: 0xD700...0xE100, using: &generator) })
    case 15: file.utf16String([UInt16.random(in: 0x20...0x300, using: &generator)])
    case 16:
      let width = Int.random(in: 0...4, using: &generator)
      let bytes = (0..<(1 << width)).map { _ in UInt8.random(in: 0...255, using: &generator) }
      file.add(
        [0x10 | UInt8(width)] + (width == 4 ? Array(repeating: 0, count: 8) + bytes[8...] : bytes))
    case 17:
      let marker: UInt8 = [0x23, 0x33].randomElement(using: &generator) ?? 0x23
      file.add([marker] + (0..<8).map { _ in UInt8.random(in: 0...255, using: &generator) })
    case 18:
      file.add(
        [[0x08], [0x09], [0x41, 7], [0x40], [0xA0], [0xD0]].randomElement(using: &generator) ?? [])
    default:
      let isForeign = Int.random(in: 0..<20, using: &generator) == 0
      file.add([isForeign ? Self.interesting.randomElement(using: &generator) ?? 0 : 0x09])
    }
  }

  private mutating func randomKey(of file: HandMadeBinary, below limit: Int) -> Int {
    let isForeign = Int.random(in: 0..<40, using: &generator) == 0
    guard !isForeign, let key = file.strings.randomElement(using: &generator) else {
      return Int.random(in: 0..<limit, using: &generator)
    }
    return key
  }

  /// Makes a few changes, sometimes none, so that good files are among the inputs.
  private mutating func mutate(_ file: [UInt8], other: [UInt8]) -> [UInt8] {
    var file = file
    for _ in 0..<([0, 1, 1, 1, 2, 3, 6].randomElement(using: &generator) ?? 1) {
      guard !file.isEmpty else { return other }
      change(&file, other)
    }
    return file
  }

  private mutating func change(_ file: inout [UInt8], _ other: [UInt8]) {
    let place = Int.random(in: 0..<file.count, using: &generator)
    let isBinary = file.starts(with: "bplist".utf8)
    switch Int.random(in: 0..<(isBinary ? 12 : 10), using: &generator) {
    case 0, 1: file[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 2: file[place] = UInt8.random(in: 0...255, using: &generator)
    case 3: file[place] = Self.interesting.randomElement(using: &generator) ?? 0
    case 4: file.removeSubrange(place..<min(file.count, place + length()))
    case 5: file.insert(contentsOf: file[place..<min(file.count, place + length())], at: place)
    case 6: file.removeLast(min(file.count - 1, length()))
    case 7:
      let start = other.isEmpty ? 0 : Int.random(in: 0..<other.count, using: &generator)
      let end = min(other.count, start + length())
      file.replaceSubrange(place..<min(file.count, place + length()), with: other[start..<end])
    case 8, 9:
      if isBinary {
        file[place] = file.randomElement(using: &generator) ?? 0
      } else {
        file.insert(
          contentsOf: (Self.xmlPieces.randomElement(using: &generator) ?? "").utf8, at: place)
      }
    default: changeStructure(&file)
    }
  }

  private mutating func length() -> Int {
    1 << Int.random(in: 0...5, using: &generator)
  }

  /// Changes references and offsets to other valid ones, or a number of the trailer.
  private mutating func changeStructure(_ file: inout [UInt8]) {
    guard file.count > 48 else { return }
    let trailer = file.count - 32
    let table = file[(trailer + 28)...].reduce(0) { $0 << 8 | Int($1) }
    let count = Int(file[trailer + 15])
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: file[trailer + Int.random(in: 5..<32, using: &generator)] &+= 1
    case 1: file[trailer + 23] = UInt8.random(in: 0...UInt8(max(1, count)), using: &generator)
    case 2 where (9..<trailer).contains(table):
      let entry = Int.random(in: table..<trailer, using: &generator)
      file[entry] = file[table..<trailer].randomElement(using: &generator) ?? 8
    default:
      guard (9..<trailer).contains(table) else { return }
      // A byte of the objects becomes the number of an object, because most such bytes are
      // references.
      let place = Int.random(in: 8..<table, using: &generator)
      file[place] = UInt8.random(in: 0...UInt8(max(1, count)), using: &generator)
    }
  }
}
