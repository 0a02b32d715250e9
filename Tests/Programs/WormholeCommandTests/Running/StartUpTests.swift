import Testing
import WormholeTestSupport

@Suite("The program loads little at its start", .blocking)
struct StartUpTests {
  /// Foundation proper and its ICU tables take longer to load than a whole `send`.
  @Test("No framework beyond FoundationEssentials is loaded")
  func libraries() throws {
    let loaded = try Session().shell(
      #"LD_TRACE_LOADED_OBJECTS=1 "$(command -v wormhole)" | sed 's/ =>.*//; s/^[[:space:]]*//'"#)
    let names = loaded.output.split(separator: "\n")
    #expect(names.contains { $0.hasPrefix("libc.so") }, "\(loaded)")
    for heavy in [
      "libFoundation.so", "lib_FoundationICU.so", "libFoundationInternationalization.so",
    ] {
      #expect(!names.contains { $0 == heavy }, "\(loaded)")
    }
  }
}
