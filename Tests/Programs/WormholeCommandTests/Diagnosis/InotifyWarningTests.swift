import Testing
import WormholeTestSupport

@Suite(
  "A machine without inotify instances does not change what a test sees of doctor", .blocking)
struct InotifyWarningTests {
  private static let near =
    "Warning: The user's inotify instances are nearly used up.\n   /proc\n\n"
  private static let none = "Warning: No further file can be watched: too many files.\n   C\n\n"

  @Test(
    "A finding is left out, and the others are numbered and counted without it",
    arguments: [
      ("a\n1. \(near)1 warning\nb\n", "a\nnothing wrong\nb\n"),
      ("1. \(none)1 warning", "nothing wrong"),
      ("1. Warning: A.\n\n2. \(none)2 warnings\n", "1. Warning: A.\n\n1 warning\n"),
      ("1. \(near)2. Note: A.\n\n1 warning, 1 note", "1. Note: A.\n\n1 note"),
      ("1. Fault: A.\n\n2. \(near)1 fault, 1 warning", "1. Fault: A.\n\n1 fault"),
      (
        "1. Warning: A.\n\n2. Warning: B.\n\n2 warnings",
        "1. Warning: A.\n\n2. Warning: B.\n\n2 warnings"
      ),
      ("nothing wrong\n", "nothing wrong\n"),
    ])
  func filter(printed: String, expected: String) {
    #expect(printed.withoutInotifyWarning == expected)
  }
}
