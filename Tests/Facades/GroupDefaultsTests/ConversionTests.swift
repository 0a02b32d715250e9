import Foundation
import GroupDefaults
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("A getter converts as the original does", .blocking)
struct ConversionTests {
  let scene: DefaultsScene

  init() throws { scene = try DefaultsScene() }

  /// A stored value with the result of each getter; the rules are the comments of NSUserDefaults.h,
  /// which `Conversions` quotes.
  struct Row: Sendable, CustomTestStringConvertible {
    let value: PropertyListValue
    let string: String?
    let integer: Int
    let double: Double
    let bool: Bool
    var testDescription: String { "\(value)" }

    init(
      _ value: PropertyListValue, _ string: String?, _ integer: Int, _ double: Double, _ bool: Bool
    ) {
      self.value = value
      self.string = string
      self.integer = integer
      self.double = double
      self.bool = bool
    }
  }

  static let rows: [Row] = [
    Row(42, "42", 42, 42, true),
    Row(0, "0", 0, 0, false),
    Row(-1, "-1", -1, -1, true),
    Row(.integer(.max), "9223372036854775807", .max, 0x1p63, true),
    // -[NSNumber integerValue] of an unsigned long long is C's conversion.
    Row(.unsigned(.max), "18446744073709551615", -1, 0x1p64, true),
    // "… boolean values will not be converted" by -doubleForKey:.
    Row(true, "1", 1, 0, true),
    Row(false, "0", 0, 0, false),
    Row(2.75, "2.75", 2, 2.75, true),
    Row(-2.75, "-2.75", -2, -2.75, true),
    Row(2.0, "2", 2, 2, true),
    Row(0.5, "0.5", 0, 0.5, true),
    Row(1e300, "1e+300", .max, 1e300, true),
    Row(.real(-.infinity), "-inf", .min, -.infinity, true),
    Row("42", "42", 42, 42, true),
    Row(" 12abc", " 12abc", 12, 12, true),
    Row("-7.5e1", "-7.5e1", -7, -75, true),
    Row("YES", "YES", 0, 0, true),
    Row("true", "true", 0, 0, true),
    Row("1", "1", 1, 1, true),
    Row("NO", "NO", 0, 0, false),
    Row("0", "0", 0, 0, false),
    Row("", "", 0, 0, false),
    Row("99999999999999999999", "99999999999999999999", .max, 1e20, true),
    Row("-99999999999999999999", "-99999999999999999999", .min, -1e20, true),
    Row(.date(Date(timeIntervalSinceReferenceDate: 5)), nil, 0, 0, false),
    Row(.data(Data([49])), nil, 0, 0, false),
    Row([1], nil, 0, 0, false),
    Row(["1": 1], nil, 0, 0, false),
  ]

  @Test("of numbers, strings and booleans, and of nothing else", arguments: rows)
  func table(_ row: Row) throws {
    let defaults = scene.defaults
    try defaults.write(row.value, forKey: "k")
    #expect(defaults.string(forKey: "k") == row.string)
    #expect(defaults.integer(forKey: "k") == row.integer)
    #expect(defaults.double(forKey: "k") == row.double)
    #expect(defaults.float(forKey: "k") == Float(row.double))
    #expect(defaults.bool(forKey: "k") == row.bool)
  }

  @Test("of an absent key to nil, 0 and false")
  func absent() throws {
    let defaults = scene.defaults
    #expect(defaults.object(forKey: "k") == nil && defaults.string(forKey: "k") == nil)
    #expect(defaults.integer(forKey: "k") == 0 && defaults.double(forKey: "k") == 0)
    #expect(!defaults.bool(forKey: "k") && defaults.url(forKey: "k") == nil)
    #expect(defaults.array(forKey: "k") == nil && defaults.dictionary(forKey: "k") == nil)
    #expect(defaults.data(forKey: "k") == nil && defaults.stringArray(forKey: "k") == nil)
  }

  @Test("of containers to their content, and never of an array with a number to strings")
  func containers() throws {
    let defaults = scene.defaults
    defaults.set(["a", "b"], forKey: "strings")
    defaults.set(["a", 1] as [Any], forKey: "mixed")
    defaults.set(["a": [1, 2]], forKey: "dictionary")
    defaults.set(Data([1]), forKey: "data")
    #expect(defaults.stringArray(forKey: "strings") == ["a", "b"])
    #expect(defaults.stringArray(forKey: "mixed") == nil)
    #expect(defaults.array(forKey: "mixed")?.count == 2)
    #expect(defaults.dictionary(forKey: "dictionary")?["a"] as? [Int] == [1, 2])
    #expect(defaults.data(forKey: "data") == Data([1]))
    #expect(defaults.dictionary(forKey: "data") == nil)
    #expect(defaults.array(forKey: "dictionary") == nil)
  }

  @Test("of paths to file URLs, and of a stored URL to that URL")
  func urls() throws {
    let defaults = scene.defaults
    defaults.set("/tmp/a b", forKey: "path")
    #expect(defaults.url(forKey: "path") == URL(fileURLWithPath: "/tmp/a b"))
    defaults.set("~/x", forKey: "home")
    let home = FileManager.default.homeDirectoryForCurrentUser.path
    #expect(defaults.url(forKey: "home")?.path == home + "/x")
    // As the original stores it.
    for (place, stored) in [("/x/ä", "~/x/ä"), ("", "~"), ("-other/x", home + "-other/x")] {
      let url = URL(fileURLWithPath: home + place)
      defaults.set(url, forKey: "own")
      #expect(defaults.string(forKey: "own") == stored)
      #expect(defaults.url(forKey: "own")?.path == url.path)
    }
    let file = URL(fileURLWithPath: "/tmp/ä")
    defaults.set(file, forKey: "file")
    #expect(defaults.url(forKey: "file") == file && defaults.string(forKey: "file") == "/tmp/ä")
    let web = URL(string: "https://example.com/a?b=c#d")
    defaults.set(web, forKey: "web")
    #expect(defaults.url(forKey: "web") == web)
    let relative = URL(string: "example.com/a%20b")
    defaults.set(relative, forKey: "relative")
    #expect(defaults.url(forKey: "relative") == relative)
    defaults.set(nil as URL?, forKey: "web")
    #expect(defaults.object(forKey: "web") == nil)
    for data in [Data([0xFF, 0]), Data("[1]".utf8), Data("two words".utf8), Data()] {
      defaults.set(data, forKey: "data")
      #expect(defaults.url(forKey: "data") == nil)
    }
  }

  /// The strings go through the argument domain, so that nothing is stored.
  @Test("of any string as in swift-corelibs-foundation")
  func differential() throws {
    let theirs = try #require(UserDefaults(suiteName: "wormhole-test"))
    let ours = scene.defaults
    var generator = TestSeed.next("WORMHOLE_CONVERSION_SEED").generator
    let alphabet = Array(" \t+-0012345678900.eEyYtTnN\u{A0}")
    let named = ["", "YES", "yes", "no", "true", "0x10", "12.9", "1,5", "nan", "inf", "1e400", "٣"]
    let random = (0..<400).map { _ in
      String(
        (0..<Int.random(in: 0...7, using: &generator)).map { _ in
          alphabet.randomElement(using: &generator) ?? " "
        })
    }
    for text in named + random {
      let domain = ["k": text]
      theirs.setVolatileDomain(domain, forName: UserDefaults.argumentDomain)
      ours.setVolatileDomain(domain, forName: GroupDefaults.argumentDomain)
      #expect(ours.string(forKey: "k") == theirs.string(forKey: "k"))
      #expect(ours.integer(forKey: "k") == theirs.integer(forKey: "k"), "\(text.debugDescription)")
      #expect(ours.bool(forKey: "k") == theirs.bool(forKey: "k"), "\(text.debugDescription)")
      // Theirs treats an "e" without digits as an error, unlike strtod(3); and it rounds in every
      // step, so that the last digits differ.
      if text.firstMatch(of: /[eE][+-]?\s*([^0-9]|$)/) != nil { continue }
      let (a, b) = (ours.double(forKey: "k"), theirs.double(forKey: "k"))
      #expect(a == b || abs(a - b) <= abs(b) * 1e-12, "\(text.debugDescription): \(a), \(b)")
    }
  }
}
