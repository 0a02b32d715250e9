import Testing
import WormholeTestSupport

@testable import WormholeCinemaTime

@Suite("The keys of a terminal", .blocking)
struct KeyReaderTests {
  private func keys(_ text: String) -> [ScreenKey] {
    var reader = KeyReader()
    return reader.keys(in: Array(text.utf8)) + reader.finish()
  }

  @Test("are those of vi and less, and the arrows")
  func letters() {
    #expect(
      keys("kjhl?q\r\t\u{7F}\u{08}b") == [
        .up, .down, .back, .forward, .help, .quit, .enter, .tab, .back, .back, .letter("b"),
      ])
    #expect(keys("\u{1B}[A\u{1B}[B\u{1B}[C\u{1B}[D") == [.up, .down, .forward, .back])
    #expect(keys("\u{1B}OA\u{1B}OB\u{1B}[1;5A\u{1B}OP\u{1B}[Z") == [.up, .down, .up, .help, .tab])
    #expect(keys("\u{03}\u{04}\u{1A}") == [.interrupt, .quit, .suspend])
  }

  @Test("that are unknown are skipped, and nothing of them is typed")
  func unknown() {
    #expect(keys("\u{1B}[15~q\u{1B}[3;5~\u{1B}[H") == [.quit])
    #expect(keys("é\u{00}\u{1B}[15~").isEmpty)
  }

  @Test("are the same, however their bytes arrive")
  func pieces() {
    let text = "j\u{1B}[1;5B\u{1B}OAk\u{1B}[D"
    let whole = keys(text)
    #expect(whole == [.down, .down, .up, .up, .back])
    for size in 1...4 {
      var reader = KeyReader()
      var found: [ScreenKey] = []
      let bytes = Array(text.utf8)
      for start in stride(from: 0, to: bytes.count, by: size) {
        found += reader.keys(in: Array(bytes[start..<min(start + size, bytes.count)]))
      }
      #expect(found == whole && !reader.isWaiting)
    }
  }

  @Test("have an escape that is one only if nothing follows")
  func escape() {
    var reader = KeyReader()
    #expect(reader.keys(in: [0x1B]).isEmpty && reader.isWaiting)
    #expect(reader.finish() == [.back] && !reader.isWaiting)
    #expect(reader.finish().isEmpty)
    #expect(keys("\u{1B}\u{1B}j") == [.back, .back, .down])
    // A sequence that stops in the middle is no key.
    #expect(keys("\u{1B}[1;").isEmpty)
  }
}
