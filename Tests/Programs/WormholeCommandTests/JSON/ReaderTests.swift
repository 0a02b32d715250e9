import Testing
import WormholeTestSupport

/// A listener whose reader is gone used to wait for the next message, possibly for ever.
@Suite("A listening command ends when its output has no reader any more, as by SIGPIPE", .blocking)
struct ReaderTests {
  @Test(
    "without having printed anything",
    arguments: [
      "listen x", "watch f", "notify wait n", "defaults watch", "peer list --watch",
      "peer receive box", "peer receive box --files .",
    ])
  func silent(_ command: String) throws {
    let outcome = try Session().shell(
      """
      { wormhole \(command); echo $? >status; } | true; cat status
      """)
    #expect(outcome.output == "141\n", "\(outcome)")
    #expect(!outcome.errors.contains("wormhole:"), "\(outcome.errors)")
  }

  @Test("after the only line that its reader wanted")
  func head() throws {
    let outcome = try Session().shell(
      """
      wormhole send x 1
      { wormhole listen x --current; echo $? >status; } | head -1; cat status
      """)
    #expect(outcome.output == "1\n141\n", "\(outcome)")
  }

  @Test("with the message whose line was read processed")
  func processed() throws {
    let outcome = try Session().shell(
      """
      wormhole peer send box 1 >"$T/null"
      { wormhole peer receive box; echo $? >status; } | head -1; cat status
      wormhole peer send box 2 >"$T/null"
      wormhole peer receive box --count 1
      """)
    #expect(outcome.output == "1\n141\n2\n", "\(outcome)")
  }
}
