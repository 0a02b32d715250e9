import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("Foundation and we read each other's files alike", .blocking)
struct FoundationDifferentialTests {
  @Test("PropertyListDecoder and PropertyListSerialization read our binary files alike")
  func readsOurBinary() throws {
    // CFNumber has only one NaN.
    var random = RandomValues(
      seed: TestSeed.next("PLIST_SEED").value, RandomProfile(nanPayloads: false))
    let values = EdgeValues.all + (0..<150).map { _ in random.value() }
    for value in values {
      let bytes = try value.binaryBytes()
      try DecoderAgreement.check(bytes, is: value)
      let object = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
      let answer = textualDump(try PropertyListValue(propertyList: object))
      #expect(answer == textualDump(value))
    }
  }

  @Test("PropertyListDecoder and PropertyListSerialization read our XML files alike")
  func readsOurXML() throws {
    var profile = RandomProfile.xml
    profile.byteOrderMarks = false
    var random = RandomValues(seed: TestSeed.next("PLIST_SEED").value, profile)
    for _ in 0..<150 {
      let value = random.value()
      let data = try value.xmlData()
      try DecoderAgreement.check([UInt8](data), is: value)
      // CFPropertyList reads -0.0 as 0 and some decimals with a difference in the last place.
      guard !holdsReal(value) else { continue }
      let object = try PropertyListSerialization.propertyList(from: data, format: nil)
      let answer = textualDump(try PropertyListValue(propertyList: object))
      #expect(answer == textualDump(value))
    }
  }

  @Test("We read the files of PropertyListSerialization alike")
  func weReadSerialization() throws {
    // It shares equal numbers, and treats -0.0 and 0.0 as equal.
    var profile = RandomProfile.xml
    profile.dates = -12_000_000_000...252_000_000_000
    profile.negativeZero = false
    var random = RandomValues(seed: TestSeed.next("PLIST_SEED").value, profile)
    for _ in 0..<150 {
      let value = random.value()
      for format in [PropertyListSerialization.PropertyListFormat.binary, .xml] {
        if format == .xml, holdsReal(value) { continue }
        let data = try PropertyListSerialization.data(
          fromPropertyList: value.propertyListObject, format: format, options: 0)
        try PropertyListGuard.check(data)
        let answer = textualDump(try PropertyListValue(data: data))
        #expect(answer == textualDump(value))
      }
    }
  }

  @Test("We read the files of PropertyListEncoder alike")
  func weReadEncoder() throws {
    var profile = RandomProfile.xml
    // On Linux it writes days before October 1582 in the Julian calendar; and it shares equal
    // reals, and treats -0.0 and 0.0 as equal.
    profile.negativeZero = false
    profile.dates = -12_000_000_000...252_000_000_000
    var random = RandomValues(seed: TestSeed.next("PLIST_SEED").value, profile)
    for _ in 0..<150 {
      let value = PropertyListValue.array([random.value()])
      for format in [PropertyListDecoder.PropertyListFormat.binary, .xml] {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        let data = try encoder.encode(EncodableValue(value: value))
        try PropertyListGuard.check(data)
        let answer = textualDump(try PropertyListValue(data: data))
        #expect(answer == textualDump(value))
      }
    }
  }

  private func holdsReal(_ value: PropertyListValue) -> Bool {
    textualDump(value).split(separator: " ").contains { $0.hasPrefix("R") }
  }
}

/// A value that Foundation's encoder encodes.
struct EncodableValue: Encodable {
  let value: PropertyListValue

  func encode(to encoder: any Encoder) throws {
    switch value {
    case .array(let elements):
      var container = encoder.unkeyedContainer()
      for element in elements { try container.encode(EncodableValue(value: element)) }
    case .dictionary(let entries):
      var container = encoder.container(keyedBy: AnyKey.self)
      for (key, entry) in entries {
        try container.encode(EncodableValue(value: entry), forKey: AnyKey(stringValue: key))
      }
    case .string(let string): try encode(string, encoder)
    case .integer(let integer): try encode(integer, encoder)
    case .unsigned(let integer): try encode(integer, encoder)
    case .real(let real): try encode(real, encoder)
    case .boolean(let boolean): try encode(boolean, encoder)
    case .date(let date): try encode(date, encoder)
    case .data(let data): try encode(data, encoder)
    }
  }

  private func encode(_ value: some Encodable, _ encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(value)
  }
}
