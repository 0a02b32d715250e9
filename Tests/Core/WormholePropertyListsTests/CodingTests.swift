import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("Codable values as property lists", .blocking)
struct CodingTests {
  private struct Message: Codable, Equatable {
    var title: String
    var note: String?
    var dates: [Date]
  }

  private enum Colour: String, Codable {
    case red
    case null = "$null"
  }

  private func roundTrip<T: Codable & Equatable>(_ value: T) throws -> PropertyListValue {
    let data = try PropertyListCoding.encode(value)
    #expect(try PropertyListCoding.decode(T.self, from: data) == value)
    return try PropertyListValue(data: data)
  }

  @Test("A message that is one scalar becomes a file that holds just that")
  func scalars() throws {
    #expect(try roundTrip("text") == "text")
    #expect(try roundTrip("$null") == "$null")
    #expect(try roundTrip(5) == 5)
    #expect(try roundTrip(UInt8(5)) == 5)
    #expect(try roundTrip(UInt64.max) == .unsigned(.max))
    #expect(try roundTrip(true) == true)
    #expect(try roundTrip(2.5) == 2.5)
    #expect(try roundTrip(Float(0.1)) == .real(Double(Float(0.1))))
    #expect(try roundTrip(Date.distantPast) == .date(.distantPast))
    #expect(try roundTrip(Data([1])) == .data(Data([1])))
    #expect(try roundTrip(Decimal(5)).dictionaryValue != nil)
    #expect(try roundTrip(Colour.red) == "red")
    #expect(try roundTrip(Colour.null) == "$null")
    #expect(try roundTrip(Optional(5)) == 5)
    #expect(try roundTrip(UUID()).stringValue?.count == 36)
  }

  @Test("Containers become themselves, without an envelope")
  func containers() throws {
    #expect(try roundTrip([1, 2]) == [1, 2])
    #expect(try roundTrip(["a": [true]]) == ["a": [true]])
    let message = Message(title: "é", note: nil, dates: [.distantFuture])
    #expect(try roundTrip(message) == ["title": "é", "dates": [.date(.distantFuture)]])
    #expect(try roundTrip(Optional(message))["title"] == "é")
    let xml = try PropertyListValue(data: PropertyListCoding.encode(message)).xmlData()
    #expect(try PropertyListCoding.decode(Message.self, from: xml) == message)
  }

  @Test("A property list is coded as it is, alone and within a type of the program")
  func lists() throws {
    struct Envelope: Codable, Equatable {
      var list: PropertyListValue
      var lists: [PropertyListValue]?
    }
    let list: PropertyListValue = [
      "text": "é", "numbers": [5, -1, .unsigned(.max), 2.5], "yes": true,
      "date": .date(.distantPast), "data": .data(Data([1])), "none": [:], "empty": [],
    ]
    #expect(try PropertyListCoding.encode(list) == list.binaryData())
    #expect(try PropertyListCoding.bytes(of: list) == list.binaryBytes())
    #expect(try roundTrip(list) == list)
    #expect(try PropertyListValue(encoding: list) == list)
    #expect(try list.decode(as: PropertyListValue.self) == list)
    #expect(try roundTrip(Envelope(list: list)) == ["list": list])
    #expect(try roundTrip(Envelope(list: 1, lists: [list, "b"]))["lists"] == [list, "b"])
    #expect(try roundTrip([list]) == [list])
    let json = try JSONEncoder().encode(Envelope(list: ["a": [1, "b"]]))
    #expect(try JSONDecoder().decode(Envelope.self, from: json).list == ["a": [1, "b"]])
  }

  @Test("nil is refused, and so is a value that no reader would accept")
  func refusals() throws {
    let error = #expect(throws: PropertyListError.self) {
      try PropertyListCoding.encode(Int?.none)
    }
    #expect(error?.code == .unrepresentable)
    let nan = Date(timeIntervalSinceReferenceDate: .nan)
    #expect(throws: PropertyListError.self) { try PropertyListCoding.encode([nan]) }
    #expect(throws: PropertyListError.self) { try PropertyListCoding.encode(nan) }
    let limits = PropertyListLimits(maximumBytes: 100)
    #expect(throws: PropertyListError.self) {
      try PropertyListCoding.encode([String(repeating: "x", count: 200)], limits: limits)
    }
    #expect(throws: EncodingError.self) { try PropertyListCoding.encode(Unencodable()) }
  }

  @Test("Hostile bytes do not reach the decoder, and other shapes are decoding errors")
  func decoding() throws {
    let hostile = Data(String(repeating: "<array>", count: 20_000).utf8)
    #expect(throws: PropertyListError.self) {
      try PropertyListCoding.decode([Int].self, from: hostile)
    }
    let text = try PropertyListCoding.encode("text")
    #expect(throws: DecodingError.self) { try PropertyListCoding.decode(Int.self, from: text) }
    #expect(throws: PropertyListError.self) {
      try PropertyListCoding.decode([Int].self, from: Data("(1, 2)".utf8))
    }
  }
}

private struct Unencodable: Encodable {
  struct Refusal: Error {}

  func encode(to encoder: any Encoder) throws { throw Refusal() }
}
