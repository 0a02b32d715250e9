import Foundation
import PropertyLists
import Testing

@Suite struct Smoke {
  enum Colour: String, Codable { case red, null = "$null" }
  struct S: Codable, Equatable { var a: Int; var b: String?; var c: [Date] }
  @Test func roundTrip() throws {
    let v: PropertyListValue = ["a": 1, "é": ["x", 2.5, true, -1], "d": .data(Data([1, 2])), "t": .date(.distantPast), "u": .unsigned(.max), "long": "0123456789012345678901234567890"]
    let data = try v.binaryData()
    #expect(try PropertyListValue(data: data) == v)
    let any = try PropertyListSerialization.propertyList(from: data, format: nil)
    #expect(try PropertyListValue(propertyList: any) == v)
    let x = try v.xmlData()
    #expect(try PropertyListValue(data: x) == v)
    try PropertyListGuard.check(x)
    print(v)
    #expect(try PropertyListValue(propertyList: v.propertyListObject) == v)
    print(try PropertyListValue(data: try PropertyListSerialization.data(fromPropertyList: any, format: .binary, options: 0)) == v)
    func rt<T: Codable & Equatable>(_ t: T) throws { #expect(try PropertyListCoding.decode(T.self, from: try PropertyListCoding.encode(t)) == t) }
    try rt("x"); try rt(5); try rt(UInt64.max); try rt(true); try rt(Date()); try rt(2.5); try rt(Data([1])); try rt(Colour.red); try rt([1]); try rt(S(a: 1, b: nil, c: [.distantFuture])); try rt("$null"); try rt(Colour.null)
    try rt(Float(0.1)); try rt(S?(S(a: 1, b: nil, c: []))); try rt(Int?(5)); try rt(UUID()); try rt(URL(string: "http://a")!)
  }
}
