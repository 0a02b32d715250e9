import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite(
  "Hostile binary property lists are refused before anything is built", .blocking,
  .timeLimit(.minutes(1)))
struct HostileBinaryTests {
  @Test("A set, on which PropertyListSerialization crashes, and every other foreign type")
  func foreignTypes() {
    let types: [[UInt8]] = [
      [0x00], [0x0C], [0x0D], [0x0E], [0x0F], [0x80, 1], [0xB0], [0xC0], [0xC1, 0, 0],
    ]
    for type in types {
      var file = HandMadeBinary()
      file.add(type)
      #expect(refusal(file.bytes()) == .disallowedType, "type \(type)")
      // Also within an array, and as the value of a dictionary.
      file.string("key")
      file.top = file.container(0xA0, [0])
      #expect(refusal(file.bytes()) == .disallowedType, "type \(type) in an array")
      file.top = file.container(0xD0, [1, 0])
      #expect(refusal(file.bytes()) == .disallowedType, "type \(type) in a dictionary")
    }
  }

  @Test("Arrays that share references and stand for 2 to the 60 values, which hang a naive reader")
  func doublingArrays() {
    var file = HandMadeBinary()
    file.string("x")
    for level in 0..<60 { file.container(0xA0, [level, level]) }
    file.top = 60
    #expect(refusal(file.bytes()) == .tooManyNodes)
    var limits = PropertyListLimits(maximumNodes: .max, maximumExpandedBytes: .max)
    #expect(refusal(file.bytes(), limits: limits) == .tooManyNodes)
    limits.maximumNodes = 1_000
    limits.maximumDepth = 5
    // The depth is checked first, because going down costs nothing.
    #expect(refusal(file.bytes(), limits: limits) == .tooDeep)
  }

  @Test("One string of 100 KB with 65,535 references to it, which inflates to 6.4 GB")
  func inflatingString() {
    var file = HandMadeBinary()
    file.string(String(repeating: "x", count: 100_000))
    file.top = file.container(0xA0, Array(repeating: 0, count: 65_535))
    #expect(refusal(file.bytes()) == .tooManyExpandedBytes)
  }

  @Test("100,000 nested arrays")
  func deepArrays() {
    var file = HandMadeBinary()
    file.referenceSize = 4
    file.add([0xA0])
    for level in 0..<100_000 { file.container(0xA0, [level]) }
    file.top = 100_000
    #expect(refusal(file.bytes()) == .tooDeep)
    // Deep only through an array that was visited before at a smaller depth.
    var shared = HandMadeBinary()
    shared.add([0xA0])
    for level in 0..<400 { shared.container(0xA0, [level]) }
    shared.container(0xA0, [400])
    for level in 401..<600 { shared.container(0xA0, [level]) }
    shared.top = shared.container(0xA0, [400, 600])
    #expect(refusal(shared.bytes()) == .tooDeep)
  }

  @Test("Containers that contain themselves, directly or through others")
  func cycles() {
    var file = HandMadeBinary()
    file.string("key")
    file.container(0xA0, [1])
    file.container(0xA0, [0, 3])
    file.container(0xD0, [0, 2])
    file.top = 1
    #expect(refusal(file.bytes()) == .cycle)
    file.top = 2
    #expect(refusal(file.bytes()) == .cycle)
    file.top = file.container(0xA0, [0, 0, 3])
    #expect(refusal(file.bytes()) == .cycle)
  }

  @Test("Keys that are the same object, the same text, or equal to Swift with different bytes")
  func duplicateKeys() {
    var file = HandMadeBinary()
    let a = file.string("a")
    let alsoA = file.string("a")
    let b = file.string("b")
    let wideA = file.utf16String([0x61])
    let composed = file.utf16String([0xE9])
    let decomposed = file.utf16String([0x65, 0x301])
    for keys in [[a, a], [a, alsoA], [a, wideA], [composed, decomposed], [a, b, alsoA]] {
      file.top = file.container(0xD0, keys + keys)
      #expect(refusal(file.bytes()) == .duplicateKey, "\(keys)")
    }
    file.top = file.container(0xD0, [b, a, composed, b, a, composed])
    #expect(refusal(file.bytes()) == nil)
  }

  @Test("Keys that are not strings")
  func foreignKeys() {
    let keys: [[UInt8]] = [
      [0x10, 1], [0x09], [0x41, 0], [0x23, 0, 0, 0, 0, 0, 0, 0, 0], [0xA0], [0xD0],
    ]
    for key in keys {
      var file = HandMadeBinary()
      file.string("a")
      let other = file.add(key)
      file.top = file.container(0xD0, [other, 0])
      #expect(refusal(file.bytes()) == .malformed, "\(key)")
    }
  }

  @Test(
    "Objects that are cut short, of a wrong width, or with invalid content",
    arguments: [
      [0x14, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
      [0x14] + Array(repeating: 0xFF, count: 16),
      [0x15] + Array(repeating: 0, count: 32),
      [0x1F, 0], [0x13, 0, 0], [0x11, 0], [0x10],
      [0x20, 0], [0x21, 0, 0], [0x24] + Array(repeating: 0, count: 16), [0x22, 0], [0x23, 0],
      [0x30, 0], [0x33, 0], [0x33, 0x7F, 0xF8, 0, 0, 0, 0, 0, 0],
      [0x33, 0xFF, 0xF0, 0, 0, 0, 0, 0, 0],
      [0x42, 0], [0x4F], [0x4F, 0x10], [0x4F, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255],
      [0x4F, 0x13, 255, 255, 255, 255, 255, 255, 255, 255], [0x4F, 0x14, 0], [0x4F, 0x51, 0x30],
      [0x51, 0x80], [0x52, 0x61], [0x5F, 0x12, 255, 255, 255, 255],
      [0x61, 0xD8, 0x00], [0x61, 0xDC, 0x00], [0x62, 0xD8, 0x00, 0x00, 0x41],
      [0x62, 0xDC, 0x00, 0xD8, 0x00], [0x62, 0, 0x41, 0], [0x62, 0, 0x41],
      [0x6F, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0],
      [0x6F, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255],
      [0xA1], [0xA1, 0], [0xAF, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0], [0xA1, 0xFF, 0xFF],
      [0xD1, 0, 0, 0], [0xDF, 0x13, 0x20, 0, 0, 0, 0, 0, 0, 0], [0x70], [0x90], [0xE0], [0xF0],
      [0x01], [0x0A],
    ] as [[UInt8]])
  func brokenObjects(object: [UInt8]) {
    var file = HandMadeBinary()
    file.add(object)
    #expect(refusal(file.bytes()) == .malformed)
  }

  @Test("Trailers and offset tables that contradict the file")
  func brokenTrailers() throws {
    let extremes: [[UInt8]] = [
      HandMadeBinary.bigEndian(0, 8), HandMadeBinary.bigEndian(1, 8),
      HandMadeBinary.bigEndian(7, 8), HandMadeBinary.bigEndian(1 << 32, 8),
      HandMadeBinary.bigEndian(.max, 8), HandMadeBinary.bigEndian(-1, 8),
      HandMadeBinary.bigEndian(1 << 61, 8),
    ]
    var patches: [(Int, [UInt8])] = [8, 16, 24].flatMap { at in extremes.map { (at, $0) } }
    // References of one byte would be valid too, but would mean other objects.
    patches += [0, 1, 3, 8, 9, 16, 255].map { size in (6, [size]) }
    patches += [0, 3, 8, 9, 16, 255].map { size in (7, [size]) }
    for patch in patches {
      var file = HandMadeBinary()
      file.string("a")
      file.string("b")
      file.top = file.container(0xA0, [0, 1])
      let intact = file.bytes()
      file.trailerPatches = [patch]
      // Some patches change nothing, or only the choice of the top object.
      guard file.bytes() != intact,
        patch.0 != 16 || patch.1 != extremes[0] && patch.1 != extremes[1]
      else { continue }
      #expect(refusal(file.bytes()) != nil, "\(patch)")
    }
    var file = HandMadeBinary()
    file.string("a")
    var bytes = file.bytes()
    for offset in [0, 7, 10, 1_000] {
      bytes.replaceSubrange(10..<14, with: HandMadeBinary.bigEndian(offset, 4))
      #expect(refusal(bytes) == .malformed, "offset \(offset)")
    }
  }

  @Test("References of one byte are for at most 255 objects, as Foundation requires")
  func narrowReferences() throws {
    for (count, code) in [(255, nil), (256, PropertyListError.Code.malformed)] {
      var file = HandMadeBinary()
      file.referenceSize = 1
      for _ in 1..<count { file.add([0x09]) }
      file.top = file.container(0xA0, [0, 1])
      #expect(refusal(file.bytes()) == code)
      if code == nil {
        try DecoderAgreement.check(file.bytes(), is: [true, true])
      } else {
        #expect(throws: DecodingError.self) {
          try PropertyListDecoder().decode([Bool].self, from: Data(file.bytes()))
        }
      }
    }
  }

  @Test("Every beginning of a good file")
  func truncation() throws {
    let value: PropertyListValue = ["a": [1, "é", .data(Data([1, 2, 3]))], "b": ["c": 2.5]]
    let bytes = try value.binaryBytes()
    for count in 0..<bytes.count { #expect(refusal(Array(bytes[..<count])) != nil) }
    #expect(refusal(bytes) == nil)
    #expect(refusal(Array("bplist01".utf8) + bytes.dropFirst(8)) == .unknownFormat)
  }

  @Test("Widths that no current writer uses are still read, as by Foundation")
  func unusualWidths() throws {
    for (offsetSize, referenceSize) in [(3, 3), (8, 8), (5, 7), (1, 1)] {
      var file = HandMadeBinary()
      file.offsetSize = offsetSize
      file.referenceSize = referenceSize
      file.add([0x14] + Array(repeating: 0, count: 15) + [5])
      file.add([0x13, 0, 0, 0, 0, 0, 0, 0, 7])
      file.add([0x22, 0x3F, 0x80, 0, 0])
      file.utf16String([0x61])
      file.top = file.container(0xA0, [0, 1, 2, 3])
      let value = try PropertyListValue(bytes: file.bytes())
      #expect(value == [5, 7, 1.0, "a"])
      try DecoderAgreement.check(file.bytes(), is: value)
    }
  }
}
