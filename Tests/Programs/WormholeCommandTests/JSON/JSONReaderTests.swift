import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholeCommand

@Suite("JSON is read as property lists", .blocking) struct JSONReaderTests {
  private func read(_ text: String) throws -> String {
    fingerprint(try JSONReader.read(Array(text.utf8)))
  }

  private func error(_ bytes: [UInt8]) -> JSONError? {
    #expect(throws: JSONError.self) { try JSONReader.read(bytes) }
  }

  private func error(_ text: String) -> JSONError? { error(Array(text.utf8)) }

  @Test(
    "A number is an integer if it is written as one, otherwise a real",
    arguments: [
      ("0", PropertyListValue.integer(0)), ("-0", .integer(0)), ("-12", .integer(-12)),
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
      ("9223372036854775808", .unsigned(1 << 63)), ("18446744073709551615", .unsigned(.max)),
      ("18446744073709551616.0", .real(0x1p64)), ("-9223372036854775809e0", .real(-0x1p63)),
      ("1.0", .real(1)), ("-0.0", .real(-0.0)), ("1e2", .real(100)), ("25E-2", .real(0.25)),
      ("1E+2", .real(100)), ("1e-400", .real(0)),
    ])
  func numbers(text: String, value: PropertyListValue) throws {
    #expect(try read(text) == fingerprint(value))
  }

  @Test(
    "An integer that does not fit into 64 bits is refused, with its place, and never becomes a real",
    arguments: [
      "18446744073709551616", "-9223372036854775809", "123456789012345678901234567890",
      String(repeating: "9", count: 1_000),
    ])
  func largeIntegers(text: String) throws {
    let refusal = try #require(error("[1,\n\(text)]"))
    #expect(refusal.position?.line == 2 && refusal.position?.column == 1)
    #expect(refusal.reason.hasPrefix("the integer \(text.prefix(40))"), "\(refusal)")
    #expect(refusal.reason.contains("does not fit into 64 bits"), "\(refusal)")
    #expect(refusal.reason.count < 300)
  }

  @Test(
    "Strings are read with every escape of RFC 8259",
    arguments: [
      (#""""#, ""), (#""a/\/b""#, "a//b"), (#""\"\\\b\f\n\r\t""#, "\"\\\u{8}\u{C}\n\r\t"),
      (#""\u00e9\u00E9é""#, "ééé"), (#""\ud83d\ude00x""#, "😀x"), (#""\u0000""#, "\0"),
      ("\"\u{7F}\u{2028}\"", "\u{7F}\u{2028}"),
    ])
  func strings(text: String, value: String) throws {
    #expect(try read(text) == fingerprint(.string(value)))
  }

  @Test("Containers nest, and white space may stand between all tokens")
  func containers() throws {
    let text = " { \"a\" : [ true , false,[],{ } ] ,\r\n\t\"b\":{\"c\":\"d\"} } \n"
    let expected: PropertyListValue = .dictionary([
      "a": .array([.boolean(true), .boolean(false), .array([]), .dictionary([:])]),
      "b": .dictionary(["c": .string("d")]),
    ])
    #expect(try read(text) == fingerprint(expected))
  }

  @Test("Data, dates and non-finite reals are dictionaries with one reserved key")
  func taggedScalars() throws {
    #expect(try read(#"{"$data":"AP8="}"#) == fingerprint(.data(Data([0, 255]))))
    let date = Date(timeIntervalSinceReferenceDate: 86400.25)
    #expect(try read(#"{"$date":"2001-01-02T00:00:00.25Z"}"#) == fingerprint(.date(date)))
    #expect(try read(#"{"$date":"2001-01-02T01:30:00.250+01:30"}"#) == fingerprint(.date(date)))
    #expect(try read(#"{"$real":"nan"}"#) == fingerprint(.real(.nan)))
    #expect(try read(#"{"$real":"-inf"}"#) == fingerprint(.real(-.infinity)))
    #expect(try read(#"{"$$data":1}"#) == fingerprint(.dictionary(["$data": .integer(1)])))
    #expect(try read(#"{"$ref":1}"#) == fingerprint(.dictionary(["$ref": .integer(1)])))
    #expect(
      try read(#"{"$data":1,"a":2}"#)
        == fingerprint(.dictionary(["$data": .integer(1), "a": .integer(2)])))
  }

  @Test(
    "Invalid JSON is refused with its place and the expected token",
    arguments: [
      ("{\"a\":1,}", "line 1, column 8: expected a key in quotes, found '}'"),
      ("{\"ab\": }", "line 1, column 8: expected a value, found '}'"),
      ("[1\n, 2\n  3]", "line 3, column 3: expected ',' or ']', found '3'"),
      ("", "line 1, column 1: expected a value, found the end of the text"),
      ("[\"é😀\" 1]", "line 1, column 7: expected ',' or ']', found '1'"),
      ("{\"a\" 1}", "line 1, column 6: expected ':' after the key, found '1'"),
      ("{\"a\":1 \"b\"", "line 1, column 8: expected ',' or '}', found '\"'"),
      ("1 2", "line 1, column 3: expected the end after the value, found '2'"),
      ("\u{FEFF}1", "line 1, column 1: expected a value, found U+FEFF"),
      ("-", "line 1, column 2: expected a digit, found the end of the text"),
      ("1.e5", "line 1, column 3: expected a digit after the point, found 'e'"),
      ("1e", "line 1, column 3: expected a digit in the exponent, found the end of the text"),
    ])
  func places(text: String, message: String) throws {
    #expect(error(text)?.description == "bad JSON at \(message)")
  }

  @Test(
    "A violation of the grammar or of the rules of property lists is refused",
    arguments: [
      "01", "-01", "+1", ".5", "1.", "0x10", "NaN", "Infinity", "-Infinity", "1e400", "tru",
      "True", "'a'", "\"a", "\"a\nb\"", #""\x""#, #""\u12g4""#, #""\ud800""#, #""\ud800x""#,
      #""\ud800\u0041""#, #""\udc00""#, #""\udc00\udc00""#, #""\"#, "[1,]", "[,1]", "[1", "{\"a\"}",
      "{1:2}", "}",
      "]", "[}", "{]", "[1}", "/**/1", "null", "[null]", "{\"a\":null}",
      #"{"a":1,"a":2}"#, "{\"\u{E9}\":1,\"e\u{301}\":2}", #"{"$data":5}"#, #"{"$data":"?"}"#,
      #"{"$date":"yesterday"}"#, #"{"$date":"2001-02-29T00:00:00Z"}"#, #"{"$real":"1"}"#,
      #"{"$real":1.5}"#,
    ])
  func refusals(text: String) {
    #expect(error(text) != nil)
  }

  @Test("A refusal explains what to write instead")
  func advice() {
    #expect(error("[null]")?.reason.contains("no null") == true)
    #expect(error("NaN")?.reason.contains(#"{"$real": "nan"}"#) == true)
    #expect(error(#"{"$data":5}"#)?.reason.contains(#"{"$$data": …}"#) == true)
    #expect(error(#"{"a":1, "a":2}"#)?.position?.byteOffset == 8)
  }

  @Test("Invalid UTF-8 is refused at its first bad byte")
  func invalidUTF8() {
    let bytes = Array("\"é".utf8) + [0xC3] + Array("\"".utf8)
    #expect(error(bytes)?.position?.byteOffset == 3)
    #expect(error(bytes)?.position?.column == 3)
    #expect(error([0x22, 0xED, 0xA0, 0x80, 0x22])?.position?.byteOffset == 1)
  }

  @Test("A lone null means no value if the caller allows it, and is refused otherwise")
  func optional() throws {
    #expect(try JSONReader.readOptional(Array(" null\n".utf8)) == nil)
    #expect(try JSONReader.readOptional(Array("1".utf8)).map(fingerprint) == "i1")
    #expect(throws: JSONError.self) { try JSONReader.readOptional(Array("[null]".utf8)) }
    #expect(throws: JSONError.self) { try JSONReader.readOptional(Array("null 1".utf8)) }
  }

  @Test(
    "Nulls are dropped with their keys and elements, but not alone, and nothing else is let pass",
    arguments: [
      ("[null]", "[]"), (" [ null , 1 , null ] ", "[1]"), (#"{"a" : null }"#, "{}"),
      (#"{"a":null,"b":{"c":null,"d":[null]}}"#, #"{"b":{"d":[]}}"#), ("null", nil),
      ("[nul]", nil), ("[null null]", nil), (#"{"a":null,"a":1}"#, nil), ("[null,]", nil),
    ])
  func droppedNulls(text: String, expected: String?) throws {
    do {
      let value = try JSONReader.read(Array(text.utf8), nulls: .drop)
      #expect(try JSONWriter.string(value) == expected)
    } catch {
      #expect(expected == nil, "\(error)")
    }
  }

  @Test("512 levels are read, 513 are refused, and a million do no harm")
  func depth() throws {
    func nested(_ depth: Int, around text: String = "") -> String {
      String(repeating: "[", count: depth) + text + String(repeating: "]", count: depth)
    }
    _ = try read(nested(512))
    _ = try read(nested(512, around: #"{"$data":""}"#))
    #expect(error(nested(513))?.reason.contains("512") == true)
    #expect(error(nested(512, around: #"{"a":1}"#))?.reason.contains("512") == true)
    #expect(error(String(repeating: "[", count: 1_000_000)) != nil)
    #expect(error(String(repeating: #"{"a":"#, count: 1_000_000)) != nil)
  }
}
