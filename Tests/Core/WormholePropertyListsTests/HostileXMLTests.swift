import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("XML property lists: what is read, and what is refused", .blocking, .timeLimit(.minutes(1)))
struct HostileXMLTests {
  private func plist(_ body: String) -> [UInt8] {
    Array(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\(body)</plist>\n".utf8)
  }

  @Test(
    "Nested arrays that overflow the stack of PropertyListDecoder", arguments: [9_500, 200_000])
  func deepArrays(depth: Int) {
    let open = String(repeating: "<array>", count: depth)
    let close = String(repeating: "</array>", count: depth)
    #expect(refusal(plist(open + close)) == .tooDeep)
    #expect(refusal(plist(open)) == .tooDeep)
  }

  @Test("Exactly the deepest nesting passes, and the decoder survives it")
  func deepestNesting() throws {
    let depth = PropertyListLimits.deepestNesting
    let deepest = plist(
      String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth))
    let value = try PropertyListValue(bytes: deepest)
    try DecoderAgreement.check(deepest, is: value)
    try DecoderAgreement.check(try value.binaryBytes(), is: value)
    _ = try PropertyListCoding.decode(AnyPropertyList.self, from: Data(deepest))
    #expect(refusal(plist("<array>") + deepest) != nil)
    #expect(throws: PropertyListError.self) { try PropertyListValue.array([value]).binaryBytes() }
    #expect(throws: PropertyListError.self) { try PropertyListValue.array([value]).xmlData() }
  }

  @Test(
    "Scalars as CFPropertyList reads them",
    arguments: [
      ("<integer> 5</integer>", .integer(5)), ("<integer>+ 5</integer>", .integer(5)),
      ("<integer>-0x10</integer>", .integer(-16)), ("<integer>0XfF</integer>", .integer(255)),
      ("<integer>00012</integer>", .integer(12)), ("<integer>-0</integer>", .integer(0)),
      ("<integer>-9223372036854775808</integer>", .integer(.min)),
      ("<integer>18446744073709551615</integer>", .unsigned(.max)),
      ("<real>nan</real>", .real(.nan)), ("<real>+infinity</real>", .real(.infinity)),
      ("<real>-Inf</real>", .real(-.infinity)), ("<real>.5</real>", .real(0.5)),
      ("<real>5.</real>", .real(5)), ("<real>-1E+2</real>", .real(-100)),
      ("<real>1e999</real>", .real(.infinity)), ("<true></true>", .boolean(true)),
      ("<true />", .boolean(true)), ("<false/>", .boolean(false)), ("<string/>", .string("")),
      ("<string>a&lt;&gt;&amp;&apos;&quot;&#65;&#x1F600;</string>", .string("a<>&'\"A\u{1F600}")),
      ("<string>a<![CDATA[<&]]]>]]>b</string>", .string("a<&]]]>b")),
      ("<string>a\r\nb</string>", .string("a\r\nb")),
      ("<data>\nQU\tJD\n</data>", .data(Data("ABC".utf8))),
      ("<data></data>", .data(Data())), ("<data>QQ==\n</data>", .data(Data("A".utf8))),
      ("<date>2001-01-01T00:00:01Z</date>", .date(Date(timeIntervalSinceReferenceDate: 1))),
      (
        "<date>2000-02-29T23:59:59Z</date>",
        .date(Date(timeIntervalSinceReferenceDate: -26_438_401))
      ),
      ("<array><!-- a -- b --><true/><!----></array >", .array([.boolean(true)])),
      ("<dict><key></key><!-- --><string>x</string ></dict>", .dictionary(["": .string("x")])),
    ] as [(String, PropertyListValue)])
  func scalars(body: String, expected: PropertyListValue) throws {
    #expect(refusal(plist(body)) == nil)
    #expect(try PropertyListValue(bytes: plist(body)) == expected)
    try DecoderAgreement.check(plist(body), is: expected)
  }

  @Test(
    "Bodies that are refused",
    arguments: [
      "", "<!-- -->", "text", "<true/><true/>", "<true/>x", "<true> </true>", "<true/", "<true",
      "<unknown/>", "<plist><true/></plist>", "<plist/>", "<array>", "</array>", "<array></dict>",
      "<array><key>a</key></array>", "<key>a</key>", "<dict><key>a</key></dict>",
      "<dict><string>a</string><true/></dict>", "<dict><key>a</key><key>b</key></dict>",
      "<dict><key/><true/></dict>", "<array attribute='x'/>", "<integer></integer>", "<integer/>",
      "<integer>5 </integer>", "<integer>0x</integer>", "<integer>5a</integer>",
      "<integer>- </integer>",
      "<integer>18446744073709551616</integer>", "<integer>-9223372036854775809</integer>",
      "<integer>&#53;</integer>", "<integer><!-- -->5</integer>", "<real>5 </real>",
      "<real>0x1p3</real>",
      "<real>1e</real>", "<real>.</real>", "<real>nan(1)</real>", "<real/>", "<date/>", "<data/>",
      "<date>2001-02-29T00:00:00Z</date>", "<date>2001-13-01T00:00:00Z</date>",
      "<date>2001-01-01T24:00:00Z</date>", "<date>2001-01-01T00:00:60Z</date>",
      "<date>2001-01-01 00:00:00Z</date>", "<date>20001-01-01T00:00:00Z</date>",
      "<date>99999999999999999999-01-01T00:00:00Z</date>", "<data>QQ</data>", "<data>Q===</data>",
      "<data>QQ=\n=</data>", "<data>QQ==QQ==</data>", "<data>é</data>", "<data>Q-_=</data>",
      "<string>&unknown;</string>", "<string>&lt</string>", "<string>&#0;</string>",
      "<string>&#xD800;</string>", "<string>&#x110000;</string>", "<string>&#;</string>",
      "<string>&#000000065;</string>", "<string>&#xFFFE;</string>", "<string>\u{1}</string>",
      "<string>\u{FFFF}</string>", "<string><b>x</b></string>", "<string><!-- --></string>",
      "<string><![CDATA[x]]</string>", "<?php 1 ?><true/>", "<string>a",
      "<real>\(String(repeating: "1", count: 2_000))</real>",
    ])
  func refusedBodies(body: String) {
    #expect(refusal(plist(body)) == .malformed)
  }

  @Test("Declarations, document types and encodings that are refused, and why")
  func prologs() {
    let body = "<plist><true/></plist>"
    let expansion = "<!DOCTYPE plist [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>"
    let cases: [(String, PropertyListError.Code?)] = [
      (body, nil), ("\u{FEFF}" + body, nil), (" \n" + body, nil), (body + "\n<!-- x -->\n", nil),
      ("<?xml version='1.0' encoding='utf-8'?>" + body, nil), ("<?xml version='1.0'?>" + body, nil),
      ("<!DOCTYPE plist PUBLIC \"a\" \"b\">" + body, nil), (expansion + body, .malformed),
      ("<!DOCTYPE plist SYSTEM \"/etc/passwd\"" + body, .malformed), ("<!DOCTYPE", .malformed),
      ("<!DOCTYPE plist [ ]>" + body, .malformed), ("<!DOCTYPE plist <a>" + body, .malformed),
      ("<?xml version='1.0' encoding='UTF-16'?>" + body, .unsupportedEncoding),
      ("<?xml version='1.0' encoding = 'latin1'?>" + body, .unsupportedEncoding),
      ("<?xml ENCODING\t=\"Utf-8\"?>" + body, nil), ("<?xml encoding?>" + body, nil),
      ("<?xml encoding=?>" + body, .unsupportedEncoding),
      ("<?xml encoding='utf-8?>" + body, .unsupportedEncoding),
      ("<?xml version='1.0'", .malformed), ("\n<?xml version='1.0'?>" + body, .malformed),
      (body + body, .malformed), (body + "x", .malformed), ("<dict/>", .malformed),
      ("", .unknownFormat), ("((((", .unknownFormat), ("{ a = b; }", .unknownFormat),
      ("plain", .unknownFormat), ("<", .malformed), ("bplist", .unknownFormat),
    ]
    for (text, code) in cases { #expect(refusal(Array(text.utf8)) == code, "\(text)") }
    for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32] {
      let data = body.data(using: encoding) ?? Data()
      #expect(refusal([UInt8](data)) == .unsupportedEncoding)
    }
    #expect(refusal(Array("<plist><string>".utf8) + [0xFF]) == .unsupportedEncoding)
  }

  @Test("The same key twice, or two keys that are equal to Swift, at any depth")
  func duplicateKeys() {
    for (first, second) in [("a", "a"), ("é", "e\u{301}"), ("a", "&#97;")] {
      let dictionary = "<dict><key>\(first)</key><true/><key>\(second)</key><true/></dict>"
      #expect(refusal(plist(dictionary)) == .duplicateKey)
      #expect(refusal(plist("<dict><key>\(first)</key>\(dictionary)</dict>")) == .duplicateKey)
    }
    #expect(refusal(plist("<dict><key>a</key><dict><key>a</key><true/></dict></dict>")) == nil)
  }

  @Test("Every beginning of a good file")
  func truncation() throws {
    let value: PropertyListValue = ["a": [1, "é<", .data(Data([1, 2, 3]))], "b": ["c": 2.5]]
    let bytes = [UInt8](try value.xmlData())
    // The file is still complete without its last line feed.
    for count in 0..<(bytes.count - 1) { #expect(refusal(Array(bytes[..<count])) != nil) }
    #expect(refusal(bytes) == nil)
  }
}
