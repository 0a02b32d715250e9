import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("Patterns of names", .blocking) struct ShellPatternTests {
  @Test("A pattern stands for the names that a shell's would")
  func patterns() {
    let cases: [(String, String, Bool)] = [
      ("*", "", true), ("*", "a/b", true), ("a*", "abc", true), ("a*", "ba", false),
      ("?", "é", true), ("?", "", false), ("??", "a", false), ("a?c", "abc", true),
      ("[a-c]x", "bx", true), ("[a-c]x", "dx", false), ("[!a-c]x", "dx", true),
      ("[^a]", "a", false), ("[]]", "]", true), ("[a", "[a", true), ("[!]a]", "b", true),
      ("\\*", "*", true), ("\\*", "a", false), ("[\\]]", "]", true), ("a-*-z", "a-b-c-z", true),
      ("*.plist", "x.plist.plist", true), ("", "", true), ("", "a", false), ("[a-]", "-", true),
      ("a\0*", "a\0b", true), ("a\0b", "a\0c", false), ("[z-a]", "z", false), ("a\\", "a\\", true),
    ]
    for (pattern, text, isMatch) in cases {
      #expect(ShellPattern(pattern).matches(text) == isMatch, "\(pattern) and \(text)")
    }
  }

  @Test("A pattern of many stars ends soon")
  func stars() {
    let pattern = ShellPattern(String(repeating: "*a", count: 200) + "b")
    #expect(!pattern.matches(String(repeating: "a", count: 5_000)))
  }
}
