import Foundation
import Testing
import WormholeTestSupport

@testable import WormholePropertyLists

/// One value of a large dictionary is replaced in its file.
@Suite("A file with another value for one key", .blocking)
struct ReplacingTests {
  @Test("is the file that the writer writes, whatever the dictionary and the value hold")
  func agreesWithWriter() throws {
    var random = RandomValues(seed: TestSeed.next("PLIST_SEED").value, .binary)
    var replaced = 0
    for round in 0..<240 {
      var contents = dictionary(of: 90, &random)
      let bytes = try PropertyListValue.dictionary(contents).binaryBytes()
      let keys = contents.keys.sorted()
      let key = try #require(keys.randomElement(using: &random.generator))
      contents[key] =
        switch round % 4 {
        // A string that stands there already.
        case 0: contents.values.randomElement(using: &random.generator)
        case 1: .string(keys[0])
        default: random.value(size: 3)
        }
      let value = PropertyListValue.dictionary(contents)
      let expected = try value.binaryBytes()
      let written = try value.binaryBytes(changing: key, in: bytes, limits: .standard)
      #expect(hex(written) == hex(expected))
      let document = try BinaryPropertyListDocument(bytes)
      guard let value = contents[key],
        let new = try document.replacing(key, with: value, limits: .standard)
      else { continue }
      replaced += 1
      #expect(hex(new) == hex(expected))
    }
    // A test in which nothing is replaced would prove nothing.
    #expect(replaced > 40)
  }

  @Test("is written without the others for every kind of scalar")
  func scalars() throws {
    var contents: [String: PropertyListValue] = [:]
    for number in 0..<1_000 { contents["key\(number)"] = .string("value \(number)") }
    var bytes = try PropertyListValue.dictionary(contents).binaryBytes()
    let scalars: [PropertyListValue] = [
      .integer(7), .integer(-1), .unsigned(.max), .real(0.5), .boolean(true), .string("é"),
      .date(Date(timeIntervalSinceReferenceDate: 1)), .data(Data([1, 2, 3])),
      .string(String(repeating: "long ", count: 20_000)), .string("$null"), .string("short"),
    ]
    for scalar in scalars {
      let document = try BinaryPropertyListDocument(bytes)
      let new = try #require(try document.replacing("key500", with: scalar, limits: .standard))
      #expect(try PropertyListValue(bytes: new)["key500"] == scalar)
      bytes = new
    }
    for (value, key) in [
      (.array([]), "key1"), (.string("value 2"), "key1"), (.string("key3"), "key1"),
      (.integer(1), "missing"),
    ] as [(PropertyListValue, String)] {
      let new = try BinaryPropertyListDocument(bytes).replacing(key, with: value, limits: .standard)
      #expect(new?.count == nil)
    }
  }

  @Test("has the value whoever wrote the file, in whatever order and format")
  func foreignFiles() throws {
    var random = RandomValues(
      seed: TestSeed.next("PLIST_SEED").value, RandomProfile(nanPayloads: false))
    for _ in 0..<40 {
      var contents = dictionary(of: 60, &random)
      let object = PropertyListValue.dictionary(contents).propertyListObject
      let key = try #require(contents.keys.randomElement(using: &random.generator))
      contents[key] = random.value(size: 2)
      let value = PropertyListValue.dictionary(contents)
      let file = try PropertyListSerialization.data(
        fromPropertyList: object, format: .binary, options: 0)
      let old = try PropertyListValue(data: file)
      let new = try value.binaryBytes(changing: key, in: [UInt8](file), limits: .standard)
      let read = try #require(try PropertyListValue(bytes: new).dictionaryValue)
      #expect(read[key] == contents[key])
      #expect(read.filter { $0.key != key } == old.dictionaryValue?.filter { $0.key != key })
    }
    let xml = try PropertyListValue.dictionary(["a": .string(longText)]).xmlData()
    let value = PropertyListValue.dictionary(["a": 1])
    #expect(
      try value.binaryBytes(changing: "a", in: [UInt8](xml), limits: .standard)
        == value.binaryBytes())
  }

  @Test("is written with all values if the objects are in another order than their numbers")
  func otherOrder() throws {
    var file = HandMadeBinary()
    file.container(0xD0, [1, 2, 4, 3])
    file.string("a")
    file.string("b")
    let numbers = [file.add([0x10, 7]), file.add([0x11, 1, 0])]
    var bytes = file.bytes()
    // The numbers 7 and 256 change their numbers as objects, and so their keys.
    let table = bytes.count - 32 - 5 * file.offsetSize
    let places = numbers.map { table + $0 * file.offsetSize }
    for byte in 0..<file.offsetSize { bytes.swapAt(places[0] + byte, places[1] + byte) }
    let content = try PropertyListValue(bytes: bytes)
    #expect(content == ["a": 7, "b": 256])
    for key in ["a", "b"] {
      let new = try BinaryPropertyListDocument(bytes).replacing(key, with: 1, limits: .standard)
      #expect(new?.count == nil)
    }
    var otherTop = HandMadeBinary()
    otherTop.container(0xD0, [1, 2])
    otherTop.string("a")
    otherTop.add([0x10, 7])
    otherTop.top = otherTop.container(0xA0, [0])
    let document = try BinaryPropertyListDocument(otherTop.bytes())
    #expect(try document.replacing("a", with: 1, limits: .standard)?.count == nil)
  }

  // It took quadratic time, or the suite could not be written any more.
  @Test("is written with all values beside objects that no reference reaches, whatever they claim")
  func unreachable() throws {
    for stray: [UInt8] in [[0xA1, 0, 2, 0, 2], [0xAE], [0xAF, 0x12, 0xFF, 0xFF, 0xFF, 0xFF]] {
      var file = HandMadeBinary()
      file.container(0xD0, [1, 2])
      file.string("a")
      file.add([0x10, 7])
      file.add([0xA2])
      file.add(stray)
      let bytes = file.bytes()
      #expect(try PropertyListValue(bytes: bytes) == ["a": 7])
      let new = try BinaryPropertyListDocument(bytes).replacing("a", with: 1, limits: .standard)
      #expect(new?.count == nil)
    }
  }

  @Test("is refused beyond the limits of its readers, as any file")
  func limits() throws {
    let contents: [String: PropertyListValue] = ["a": .string(longText), "b": 1, "c": [1]]
    for old in [contents, contents.filter { $0.key != "c" }] {
      let bytes = try PropertyListValue.dictionary(old).binaryBytes()
      var new = old
      new["b"] = .string(longText + ".")
      let value = PropertyListValue.dictionary(new)
      for limits in [
        PropertyListLimits(maximumBytes: 7_000), PropertyListLimits(maximumExpandedBytes: 7_000),
      ] {
        #expect(throws: PropertyListError.self) {
          try value.binaryBytes(changing: "b", in: bytes, limits: limits)
        }
      }
    }
  }

  private let longText = String(repeating: "text", count: 1_000)

  /// Returns a dictionary of more than a few entries, because small ones are always written anew.
  private func dictionary(
    of count: Int, _ random: inout RandomValues
  ) -> [String: PropertyListValue] {
    var contents: [String: PropertyListValue] = ["filler": .data(Data(repeating: 1, count: 2_048))]
    for number in 0..<Int.random(in: 1...count, using: &random.generator) {
      contents[random.string() + "\(number)"] = random.value(size: 2)
    }
    return contents
  }
}
