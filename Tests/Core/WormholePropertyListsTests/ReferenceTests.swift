import Testing
import WormholePropertyLists
import WormholeTestSupport

/// The references of keyed archives, which only a reader that asks for them accepts.
@Suite("A reference of a keyed archive", .blocking)
struct ReferenceTests {
  private static let limits = {
    var limits = PropertyListLimits.standard
    limits.admitsReferences = true
    return limits
  }()

  private func file(_ marker: [UInt8]) -> [UInt8] {
    var binary = HandMadeBinary()
    binary.top = binary.add([0xA1, 0, 1])
    binary.add(marker)
    return binary.bytes()
  }

  @Test("is refused, unless the reader asks for it")
  func refused() throws {
    let bytes = file([0x80, 7])
    let error = #expect(throws: PropertyListError.self) { try PropertyListValue(bytes: bytes) }
    #expect(error?.code == .disallowedType)
    #expect(throws: PropertyListError.self) { try PropertyListGuard.check(bytes) }
    #expect(try PropertyListValue(bytes: bytes, limits: Self.limits) == [["CF$UID": 7]])
  }

  @Test("has 1 to 4 bytes", arguments: 0..<16)
  func widths(width: UInt8) throws {
    let bytes = file([0x80 | width] + Array(repeating: 0xFF, count: Int(width) + 1))
    guard width < 4 else {
      #expect(throws: PropertyListError.self) {
        try PropertyListValue(bytes: bytes, limits: Self.limits)
      }
      return
    }
    let number = Int64(1) << (8 * (Int64(width) + 1)) - 1
    #expect(
      try PropertyListValue(bytes: bytes, limits: Self.limits) == [["CF$UID": .integer(number)]])
  }

  @Test("counts as the dictionary that it becomes")
  func budget() throws {
    let bytes = file([0x80, 7])
    var limits = Self.limits
    limits.maximumNodes = 3
    #expect(throws: PropertyListError.self) { try PropertyListValue(bytes: bytes, limits: limits) }
    limits.maximumNodes = 4
    limits.maximumDepth = 1
    #expect(throws: PropertyListError.self) { try PropertyListValue(bytes: bytes, limits: limits) }
    limits.maximumDepth = 2
    #expect(try PropertyListValue(bytes: bytes, limits: limits).arrayValue?.count == 1)
  }

  @Test("is read as it was written, and other dictionaries stay what they are")
  func roundTrip() throws {
    let value: PropertyListValue = [
      ["CF$UID": 0], ["CF$UID": .integer(Int64(UInt32.max))], ["CF$UID": -1],
      ["CF$UID": .integer(Int64(UInt32.max) + 1)], ["CF$UID": "x"], ["CF$UID": 1, "b": 2],
    ]
    let bytes = try value.binaryBytes(limits: Self.limits)
    #expect(try PropertyListValue(bytes: bytes, limits: Self.limits) == value)
    #expect(throws: PropertyListError.self) { try PropertyListValue(bytes: bytes) }
    #expect(try PropertyListValue(bytes: value.binaryBytes()) == value)
  }
}
