import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("Property-list values", .blocking)
struct ValueTests {
  @Test("Literals make the case that they look like")
  func literals() {
    let value: PropertyListValue = ["a": 1, "b": 2.5, "c": true, "d": ["x", "\(1 + 1)"], "e": [:]]
    let expected: [String: PropertyListValue] = [
      "a": .integer(1), "b": .real(2.5), "c": .boolean(true),
      "d": .array([.string("x"), .string("2")]), "e": .dictionary([:]),
    ]
    #expect(value == .dictionary(expected))
  }

  @Test("A footprint shows how large the binary file can be at most")
  func footprint() throws {
    var random = RandomValues(seed: TestSeed.next("PLIST_SEED").value, .binary)
    for size in 1...200 {
      let value = random.value(size: size)
      #expect(try value.footprint.mostFileBytes >= value.binaryBytes().count)
    }
    let wide = PropertyListValue.array((0..<300).map { .string("\($0)é") })
    #expect(try wide.footprint.mostFileBytes >= wide.binaryBytes().count)
  }

  @Test("Integers are equal by number, and equal values hash alike")
  func equality() {
    #expect(PropertyListValue.integer(5) == .unsigned(5))
    #expect(Set([PropertyListValue.integer(5), .unsigned(5)]).count == 1)
    #expect(PropertyListValue.integer(-1) != .unsigned(.max))
    #expect(PropertyListValue.integer(1) != .real(1))
    #expect(PropertyListValue.integer(1) != .boolean(true))
    #expect(PropertyListValue.real(.nan) == .real(.nan))
    #expect(PropertyListValue.real(0.0) != .real(-0.0))
    #expect(Set([PropertyListValue.real(.nan), .real(.nan)]).count == 1)
    let nan = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: .nan))
    #expect(nan == nan)
    #expect(PropertyListValue.array([.integer(5)]) == .array([.unsigned(5)]))
  }

  @Test("Strings are equal byte by byte, and values with them hash alike")
  func strings() {
    let (composed, decomposed) = (PropertyListValue("\u{E9}"), PropertyListValue("e\u{301}"))
    #expect(composed != decomposed && [composed] != [decomposed])
    #expect(composed == "\u{E9}" && composed.hashValue == PropertyListValue("\u{E9}").hashValue)
  }

  @Test("An integer is unsigned only above Int64.max")
  func canonicalIntegers() throws {
    guard case .integer(.max) = PropertyListValue(UInt64(Int64.max)),
      case .unsigned(let above) = PropertyListValue(UInt64(Int64.max) + 1),
      case .integer(-3)? = PropertyListValue(exactly: Int8(-3))
    else {
      Issue.record("not canonical")
      return
    }
    #expect(above == 1 << 63)
    #expect(PropertyListValue(exactly: Int128(UInt64.max) + 1) == nil)
    #expect(PropertyListValue(exactly: Int128(UInt64.max)) == .unsigned(.max))
  }

  @Test("Accessors return the value of their own type, and numbers that fit")
  func accessors() {
    let value: PropertyListValue = .unsigned(5)
    #expect(value.intValue == 5 && value.int64Value == 5 && value.uint64Value == 5)
    #expect(value.doubleValue == 5 && value.boolValue == nil && value.stringValue == nil)
    #expect(PropertyListValue.unsigned(.max).intValue == nil)
    #expect(PropertyListValue.integer(-1).uint64Value == nil)
    #expect(PropertyListValue.real(1).intValue == nil)
    #expect(PropertyListValue.integer(1).boolValue == nil)
    #expect(PropertyListValue.date(.distantPast).dateValue == .distantPast)
    #expect(PropertyListValue.data(Data([1])).dataValue == Data([1]))
    #expect(PropertyListValue.array([1]).arrayValue == [1])
    #expect(PropertyListValue.dictionary(["a": 1]).dictionaryValue == ["a": 1])
  }

  @Test("Subscripts read, change, add and remove elements")
  func subscripts() {
    var value: PropertyListValue = ["list": [1, 2]]
    value["list"]?[1] = 3
    value["list"]?[2] = 4
    value["list"]?[9] = 5
    value["list"]?[0] = nil
    value["new"] = "x"
    value["absent"] = nil
    #expect(value == ["list": [3, 4], "new": "x"])
    #expect(value["list"]?[-1] == nil && value["list"]?[2] == nil && value["list"]?["a"] == nil)
    value["list"] = nil
    #expect(value == ["new": "x"])
    var scalar: PropertyListValue = 1
    scalar["a"] = 2
    #expect(scalar == ["a": 2])
  }

  @Test("Descriptions are one line and do not disturb a terminal")
  func descriptions() {
    let value: PropertyListValue = [
      "b": [1, 2.5, false, .data(Data([1, 2]))], "a": "x\n\"\u{1B}[2J", "é": [:],
      "d": .date(Date(timeIntervalSinceReferenceDate: 0)),
      "n": .date(Date(timeIntervalSinceReferenceDate: .nan)),
    ]
    #expect(
      value.description == """
        ["a": "x\\n\\"\\u{1B}[2J", "b": [1, 2.5, false, <2 bytes>], "d": 2001-01-01T00:00:00Z, \
        "n": date(nan), "é": [:]]
        """)
  }

  @Test("The same value becomes the same bytes, whatever the order of insertion")
  func deterministic() throws {
    var random = RandomValues(seed: TestSeed.next("PLIST_SEED").value, .binary)
    let keys = (0..<40).map { "\($0)" + random.string() }
    var forward: [String: PropertyListValue] = [:]
    for key in keys { forward[key] = .string(key) }
    var backward = [String: PropertyListValue](minimumCapacity: 4_000)
    for key in keys.reversed() { backward[key] = .string(key) }
    #expect(
      try PropertyListValue.dictionary(forward).binaryBytes()
        == PropertyListValue.dictionary(backward).binaryBytes())
  }

  @Test("Equal strings are written once, even if there are many")
  func sharing() throws {
    let rows = PropertyListValue.array(
      (0..<1_000).map { ["name": "same", "number": .integer($0)] })
    let bytes = try rows.binaryBytes()
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.split(separator: "same", omittingEmptySubsequences: false).count < 20)
    // Composed and decomposed letters are equal to Swift but stay different in the file.
    let letters = PropertyListValue.array((0..<100).map { .string($0 % 2 == 0 ? "é" : "e\u{301}") })
    let read = try PropertyListValue(bytes: letters.binaryBytes())
    #expect(textualDump(read) == textualDump(letters))
  }

  @Test("A value that a format cannot hold is refused with its path")
  func unrepresentable() throws {
    let nan = Date(timeIntervalSinceReferenceDate: .nan)
    #expect(throws: PropertyListError.self) { try PropertyListValue.date(nan).binaryBytes() }
    let far: PropertyListValue = .date(Date(timeIntervalSinceReferenceDate: 1e15))
    #expect(try PropertyListValue(bytes: far.binaryBytes()) == far)
    let cases: [(PropertyListValue, String)] = [
      (["a": ["x", ["b": "\u{0}"]]], "a[1].b"), (["a": .array([far])], "a[0]"), ("\u{FFFE}", ""),
    ]
    for (value, path) in cases {
      let error = #expect(throws: PropertyListError.self) { try value.xmlData() }
      #expect(error?.code == .unrepresentable && error?.position == .keyPath(path))
    }
  }
}
