import Foundation
import GroupDefaults
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("A suite and other tools", .blocking)
struct ExchangeTests {
  let scene: DefaultsScene

  init() throws { scene = try DefaultsScene() }

  /// The layout of `plutil -convert xml1` and `defaults export` on Apple's systems.
  private static let apple = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    <dict>
    \t<key>NSWindow Frame Main</key>
    \t<string>0 0 800 600</string>
    \t<key>enabled</key>
    \t<true/>
    \t<key>nested</key>
    \t<dict>
    \t\t<key>data</key>
    \t\t<data>
    \t\tAQID
    \t\t</data>
    \t\t<key>list</key>
    \t\t<array>
    \t\t\t<integer>18446744073709551615</integer>
    \t\t\t<real>0.5</real>
    \t\t\t<date>2001-01-01T00:00:05Z</date>
    \t\t</array>
    \t</dict>
    </dict>
    </plist>

    """

  private static let contents: [String: PropertyListValue] = [
    "NSWindow Frame Main": "0 0 800 600", "enabled": true,
    "nested": [
      "data": .data(Data([1, 2, 3])),
      "list": [
        .unsigned(.max), 0.5, .date(Date(timeIntervalSinceReferenceDate: 5)),
      ],
    ],
  ]

  @Test("an import of XML or binary keeps all types, and treats other keys as requested")
  func imports() throws {
    let defaults = scene.defaults
    defaults.set(1, forKey: "other")
    defaults.set("old", forKey: "enabled")
    let binary = try PropertyListValue.dictionary(Self.contents).binaryData()
    for data in [Data(Self.apple.utf8), binary] {
      #expect(try defaults.importSuite(from: data, .merging) == 3)
      #expect(try defaults.storedValues() == Self.contents.merging(["other": 1]) { $1 })
    }
    #expect(try defaults.importSuite(from: Data(Self.apple.utf8), .replacing) == 3)
    #expect(try defaults.storedValues() == Self.contents)
  }

  @Test("an export is read back by Foundation and by Python, with all types")
  func exports() throws {
    let defaults = scene.defaults
    try defaults.importSuite(from: Data(Self.apple.utf8), .replacing)
    let binary = try defaults.exportSuite(as: .binary)
    struct Nested: Decodable, Equatable {
      let data: Data
    }
    struct Whole: Decodable, Equatable {
      let enabled: Bool
      let nested: Nested
    }
    let whole = try PropertyListDecoder().decode(Whole.self, from: binary)
    #expect(whole == Whole(enabled: true, nested: Nested(data: Data([1, 2, 3]))))
    // The export, and the suite's file itself.
    let place = try TemporaryDirectory()
    let export = URL(filePath: place.path + "/export.plist")
    try defaults.exportSuite(as: .xml).write(to: export)
    let script = """
      import plistlib, sys
      a, b = [plistlib.load(open(path, 'rb')) for path in sys.argv[1:]]
      print(a == b, a['nested']['list'])
      """
    let python = try Participant(
      program: "python3", ["-c", script, export.path, scene.file])
    #expect(
      try python.answer()
        == "True [18446744073709551615, 0.5, datetime.datetime(2001, 1, 1, 0, 0, 5)]")
  }

  @Test(
    "an import of anything else is refused, and nothing has changed",
    arguments: [
      Data(), Data("garbage".utf8), Data("{ a = 1; }".utf8), Data("bplist00".utf8),
      Data("<plist version=\"1.0\"><array/></plist>".utf8),
      Data("<plist version=\"1.0\"><dict><key>a</key></dict></plist>".utf8),
      Data(
        ("<plist version=\"1.0\"><dict><key>a</key>" + String(repeating: "<array>", count: 9_500))
          .utf8),
    ])
  func refused(_ data: Data) throws {
    scene.defaults.set(1, forKey: "k")
    let error = #expect(throws: WormholeError.self) {
      try scene.defaults.importSuite(from: data, .replacing)
    }
    #expect(error?.code == .badImport)
    #expect(try scene.defaults.storedValues() == ["k": 1])
  }

  @Test("an import of a missing file or a FIFO ends at once with its reason")
  func files() throws {
    let place = try TemporaryDirectory()
    let file = URL(filePath: place.path + "/suite.plist")
    #expect(throws: WormholeError.self) { try scene.defaults.importSuite(from: file, .merging) }
    try Data(Self.apple.utf8).write(to: file)
    #expect(try scene.defaults.importSuite(from: file, .merging) == 3)
    let fifo = try ChildProcess("mkfifo", [place.path + "/fifo"])
    _ = try fifo.wait(until: soon)
    let error = #expect(throws: WormholeError.self) {
      try scene.defaults.importSuite(from: URL(filePath: place.path + "/fifo"), .merging)
    }
    #expect(error?.code == .notAValue)
  }

  @Test("an export as XML reports content that XML cannot hold")
  func control() throws {
    scene.defaults.set("\u{1}", forKey: "k")
    let error = #expect(throws: WormholeError.self) {
      try scene.defaults.exportSuite(as: .xml)
    }
    #expect(error?.code == .badExport)
    #expect(throws: Never.self) { try scene.defaults.exportSuite(as: .binary) }
  }
}
