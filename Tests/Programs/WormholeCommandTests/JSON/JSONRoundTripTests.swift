import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholeCommand

@Suite("JSON carries every property list in both directions", .blocking) struct JSONRoundTripTests {
  @Test(
    "Values are written on one line without spaces, keys sorted by their bytes",
    arguments: [
      (PropertyListValue.real(1), "1.0"), (.real(0.1), "0.1"), (.real(-0.0), "-0.0"),
      (.real(.nan), #"{"$real":"nan"}"#), (.real(-.infinity), #"{"$real":"-inf"}"#),
      (.integer(-5), "-5"), (.unsigned(.max), "18446744073709551615"),
      (.boolean(true), "true"), (.string("a\"\\\n\u{1}\u{1F}é/"), #""a\"\\\n\u0001\u001fé/""#),
      (.string("\u{7F}\u{9B}\u{A0}\u{202E}\u{2069}"), "\"\\u007f\\u009b\u{A0}\\u202e\\u2069\""),
      (.data(Data([0, 255])), #"{"$data":"AP8="}"#),
      (.date(Date(timeIntervalSinceReferenceDate: 0)), #"{"$date":"2001-01-01T00:00:00Z"}"#),
      (.date(Date(timeIntervalSince1970: -0.25)), #"{"$date":"1969-12-31T23:59:59.75Z"}"#),
      (.array([]), "[]"), (.dictionary([:]), "{}"),
      (
        .dictionary(["b": .integer(1), "a": .array([.integer(2), .string("x")]), "Z": .real(2)]),
        #"{"Z":2.0,"a":[2,"x"],"b":1}"#
      ),
      // In the order of characters, as Swift compares them, "f" would precede "é".
      (
        .dictionary(["f": .integer(1), "e\u{301}": .integer(2)]), "{\"e\u{301}\":2,\"f\":1}"
      ),
      (.dictionary(["$data": .integer(1)]), #"{"$$data":1}"#),
      (.dictionary(["$$real": .integer(1)]), #"{"$$$real":1}"#),
      (.dictionary(["$ref": .integer(1)]), #"{"$ref":1}"#),
      (.dictionary(["$date": .integer(1), "a": .integer(2)]), #"{"$date":1,"a":2}"#),
    ])
  func writing(value: PropertyListValue, text: String) throws {
    #expect(try JSONWriter.string(value) == text)
  }

  @Test("Random values read back as the same to the last bit, whatever they hold")
  func randomValues() throws {
    var random = RandomValue(generator: TestSeed.next("WORMHOLE_TEST_SEED").generator)
    for _ in 0..<3_000 {
      let value = random.value()
      let bytes = try JSONWriter.bytes(value)
      #expect(!bytes.contains(UInt8(ascii: "\n")))
      let back = try JSONReader.read(bytes)
      guard fingerprint(back) == fingerprint(value) else {
        Issue.record("\(String(decoding: bytes, as: UTF8.self)) became \(fingerprint(back))")
        return
      }
      let pretty = try JSONWriter.bytes(value, isPretty: true)
      #expect(try fingerprint(JSONReader.read(pretty)) == fingerprint(value))
    }
  }

  @Test("Random damage to a text is refused or read, and never traps")
  func damagedTexts() throws {
    var random = RandomValue(generator: TestSeed.next("WORMHOLE_TEST_SEED").generator)
    for _ in 0..<3_000 {
      var bytes = try JSONWriter.bytes(random.value(depth: 3))
      for _ in 0...Int.random(in: 0...2, using: &random.generator) {
        let index = Int.random(in: 0..<bytes.count, using: &random.generator)
        bytes[index] = UInt8.random(in: 0 ... .max, using: &random.generator)
      }
      do {
        let value = try JSONReader.read(bytes)
        _ = try JSONReader.read(try JSONWriter.bytes(value))
      } catch {
        #expect((0...bytes.count).contains(error.position?.byteOffset ?? -1))
      }
    }
  }

  @Test("A value nested deeper than the reader accepts is refused by the writer")
  func depth() throws {
    func nested(_ depth: Int) -> PropertyListValue {
      (1..<depth).reduce(.array([])) { value, _ in .array([value]) }
    }
    #expect(try JSONWriter.bytes(nested(512)).count == 1024)
    #expect(throws: JSONError.self) { try JSONWriter.bytes(nested(513)) }
  }

  @Test("Python and this program read each other's output")
  func python() throws {
    var random = RandomValue(generator: TestSeed.next("WORMHOLE_TEST_SEED").generator)
    let values = (0..<400).map { _ in random.value() }
    let lines = try values.map { try JSONWriter.string($0) }
    guard let answers = try Python.run(Self.script, input: lines.joined(separator: "\n")) else {
      return
    }
    let written = answers.split(separator: "\n").map(String.init)
    try #require(written.count == values.count * 2)
    for (index, value) in values.enumerated() {
      let (ascii, plain) = (written[2 * index], written[2 * index + 1])
      #expect(fingerprint(try JSONReader.read(Array(ascii.utf8))) == fingerprint(value))
      #expect(fingerprint(try JSONReader.read(Array(plain.utf8))) == fingerprint(value))
      // Two spellings of one real are both right; all other values have only one.
      if !lines[index].contains(".") { #expect(plain == lines[index]) }
    }
  }

  /// Each line twice: spaced, escaped and in reverse order of the keys; and in our form.
  private static let script = """
    import json, re, sys
    # What controls a terminal, which Python escapes only up to U+001F.
    controls = re.compile('[\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]')
    def refuse(name): raise ValueError(name)
    def backwards(value):
        if isinstance(value, dict):
            return {k: backwards(value[k]) for k in sorted(value, reverse=True)}
        return [backwards(v) for v in value] if isinstance(value, list) else value
    out = []
    for line in sys.stdin.buffer.read().split(b'\\n'):
        value = json.loads(line.decode(), parse_constant=refuse)
        out.append(json.dumps(backwards(value)))
        text = json.dumps(value, sort_keys=True, separators=(',', ':'), ensure_ascii=False)
        out.append(controls.sub(lambda found: '\\\\u%04x' % ord(found[0]), text))
    sys.stdout.buffer.write('\\n'.join(out).encode())
    """
}
