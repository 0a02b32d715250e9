import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A bar shows the progress of a file", .blocking) struct ProgressLineTests {
  private func line(_ completed: Int64, _ total: Int64, columns: Int = 80) -> String {
    ProgressLine(file: "a\u{1B}b\nc", columns: columns)
      .text(completed: completed, total: total)
  }

  @Test("It fills up, and an empty file is whole")
  func fraction() {
    #expect(
      line(0, 36_000_000) == "[------------------------]   0 %  0 of 36 MB  a\\u{1B}b\\nc")
    #expect(
      line(12_000_000, 36_000_000) == "[########----------------]  33 %  12 of 36 MB  a\\u{1B}b\\nc"
    )
    #expect(line(0, 0).hasPrefix("[########################] 100 %  0 of 0 MB"))
  }

  @Test("A file that grew meanwhile does no harm, and no line is wider than the terminal")
  func bounds() {
    #expect(line(5, 2).hasPrefix("[########################] 100 %"))
    #expect(line(-5, 2).hasPrefix("[------------------------]   0 %"))
    for columns in [0, 1, 10, 40] {
      #expect(line(1, 2, columns: columns).count <= max(columns - 1, 1))
    }
  }
}
