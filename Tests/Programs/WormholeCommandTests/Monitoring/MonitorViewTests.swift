import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholeCommand
@testable import WormholeInspection

@Suite("The filters and the backlog of wormhole monitor", .blocking) struct MonitorViewTests {
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

  // It used to remember the address of each session that there ever was.
  @Test("Of the peers that are gone, the last hundred are known")
  func peers() throws {
    var view = MonitorView()
    for number in 1...1_000 {
      for change in [ContainerEvent.Change.entered, .died] {
        var event = ContainerEvent(.presence, change, of: "peer/phone", isOwn: true)
        event.value = ["mailbox": .string("address-\(number)")]
        _ = view.lines(of: event)
      }
    }
    #expect(view.peers.count == MonitorView.maximumFormer && view.peers["address-1000"] == "phone")
  }

  @Test("A slow reader gets the last lines, and learns how many were left out")
  func backlog() {
    let backlog = MonitorItem.backlog(capacity: 4)
    for count in 1...9 { backlog.add(.leftOut(count)) }
    var counts: [Int] = []
    while case .leftOut(let count)? = backlog.next(until: .now) { counts.append(count) }
    #expect(counts.reduce(0, +) == 45 && counts.count <= 4 && counts.last == 9, "\(counts)")
  }
}
