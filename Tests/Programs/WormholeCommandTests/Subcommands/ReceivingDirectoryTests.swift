import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A received file gets a harmless, unused name", .blocking)
struct ReceivingDirectoryTests {
  @Test(
    "Names are one harmless component",
    arguments: [
      ("a.txt", "a.txt"), ("Ü b.tar.gz", "Ü b.tar.gz"), ("../../etc/passwd", "_.._.._etc_passwd"),
      ("..", "_.."), (".", "_."), (".bashrc", "_.bashrc"), ("-rf", "_-rf"), ("", "_"),
      ("a\nb\u{1B}[31m\0c", "a_b_[31m_c"), ("gpj.\u{202E}exe", "gpj._exe"), ("/", "_"),
    ])
  func safe(_ name: String, _ expected: String) {
    #expect(ReceivingDirectory.safe(name) == expected)
  }

  @Test("Long names fit, whole characters and the suffix are kept")
  func long() {
    let long = ReceivingDirectory.safe(String(repeating: "é", count: 300) + ".mov")
    #expect(long.utf8.count <= 200 && long.hasSuffix("é.mov"))
    #expect(ReceivingDirectory.safe("." + String(repeating: "x", count: 1_000)).utf8.count <= 200)
    #expect(
      ReceivingDirectory.safe("a." + String(repeating: "x", count: 1_000)).utf8.count <= 200)
    // One character of many scalars.
    let flags = "e" + String(repeating: "\u{301}", count: 500)
    #expect(ReceivingDirectory.safe(flags).utf8.count <= 200)
  }

  @Test("A taken name gets a number before its suffix")
  func unique() throws {
    let place = try TemporaryDirectory()
    let directory = try ReceivingDirectory(place.path)
    func names(_ name: String) -> [String] {
      directory.places(for: name).prefix(2).map { String($0.dropFirst(place.path.count + 1)) }
    }
    #expect(names("a.txt") == ["a.txt", "a-2.txt"])
    #expect(names("b") == ["b", "b-2"])
    #expect(names("_.b") == ["_.b", "_-2.b"])
  }

  @Test("A target that is not a directory is refused before any file is taken")
  func noDirectory() throws {
    let place = try TemporaryDirectory()
    #expect(throws: CommandError.self) { try ReceivingDirectory(place.path + "/missing") }
    _ = try FileDescriptor.open(place.path + "/file", [.writeOnly, .create])
    #expect(throws: CommandError.self) { try ReceivingDirectory(place.path + "/file") }
  }
}
