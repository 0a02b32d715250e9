import Foundation
import PropertyLists
import Testing

@Suite struct Smoke {
  @Test func roundTrip() throws {
    let v: PropertyListValue = [
      "a": 1, "é": ["x", 2.5, true, -1], "d": .data(Data([1, 2])), "t": .date(.distantPast),
      "u": .unsigned(.max), "long": "0123456789012345678901234567890",
    ]
    let data = try v.binaryData()
    #expect(try PropertyListValue(data: data) == v)
    let any = try PropertyListSerialization.propertyList(from: data, format: nil)
    #expect(try PropertyListValue(propertyList: any) == v)
    print(v)
    #expect(try PropertyListValue(propertyList: v.propertyListObject) == v)
    print(
      try PropertyListValue(
        data: try PropertyListSerialization.data(fromPropertyList: any, format: .binary, options: 0)
      ) == v)
  }
}
