import Testing
import WormholeTestSupport

@Suite("The reader of Swift files", .blocking)
struct SourceTextTests {
  private func code(_ text: String) -> [String] { SourceText(text).lines.map(\.trimmedCode) }
  private func comments(_ text: String) -> [String] { SourceText(text).lines.map(\.trimmedComment) }

  @Test("separates code from comments, even nested ones")
  func comments() {
    #expect(code("a // b\nc /* d /* e */ f\n g */ h") == ["a", "c", "h"])
    #expect(comments("a // b\nc /* d /* e */ f\n g */ h") == ["// b", "/* d /* e */ f", "g */"])
    #expect(code("let url = \"http://x\" // y") == ["let url = \"\""])
  }

  @Test("drops the contents of strings, and keeps interpolations")
  func strings() {
    #expect(code(#"a("try? \" // no") + b"#) == [#"a("") + b"#])
    #expect(code(#"a("x \(f("y", (g))) z") + b"#) == [#"a("(f("", (g)))") + b"#])
    #expect(code("a(#\"\\(no) \" \\#(yes)\"#)") == ["a(#\"(yes)\"#)"])
    #expect(
      code("a = \"\"\"\n  try? \"quoted\"\n  \"\"\"\nb") == ["a = \"\"\"", "", "\"\"\"", "b"])
    #expect(code("a = \"\" + b // c") == ["a = \"\" + b"])
  }

  @Test("handles compiler directives")
  func directives() {
    #expect(code("#if canImport(X)\n#endif") == ["#if canImport(X)", "#endif"])
  }
}
