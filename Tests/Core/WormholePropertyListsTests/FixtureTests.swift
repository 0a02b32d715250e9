import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("Property lists whose bytes are fixed", .blocking)
struct FixtureTests {
  private let value: PropertyListValue = [
    "string": "text", "unicode": "é 日本語 😀", "empty": "", "negative": -1, "small": 5,
    "wide": 70_000, "long": 5_000_000_000, "unsigned": .unsigned(.max), "real": 0.1, "yes": true,
    "no": false, "date": .date(Date(timeIntervalSinceReferenceDate: -992_490_140)),
    "data": .data(Data(0..<20)), "array": [1, "two", []], "dictionary": ["nested": [:]],
  ]

  private func fixture(_ name: String) throws -> Data {
    try Data(contentsOf: URL(filePath: Checkout.path("Fixtures/plists/\(name)")))
  }

  @Test(
    "They read as the value that they always were",
    arguments: ["python-binary", "python-xml", "ours-binary", "ours-xml"])
  func reading(name: String) throws {
    let data = try fixture(name + ".plist")
    #expect(try PropertyListValue(data: data) == value)
    try DecoderAgreement.check([UInt8](data), is: value)
  }

  @Test("Today's files equal those of the time when they were fixed")
  func writing() throws {
    #expect(try value.binaryData() == fixture("ours-binary.plist"))
    #expect(try value.xmlData() == fixture("ours-xml.plist"))
  }
}
