import Testing
import WormholeTestSupport

@Suite("The program loads little at its start", .blocking)
struct StartUpTests {
  /// Foundation proper and its ICU tables take longer to load than a whole `send`.
  @Test("No framework beyond FoundationEssentials is loaded")
  func libraries() throws {
    let names = try loaded(by: BuiltProgram.asBuilt("wormhole"))
    #expect(names.contains { $0.hasPrefix("libswiftCore.so") }, "\(names)")
    for heavy in [
      "libFoundation.so", "lib_FoundationICU.so", "libFoundationInternationalization.so",
    ] {
      #expect(!names.contains { $0 == heavy }, "\(names)")
    }
  }

  @Test(
    "The copies that most tests start load no library of Swift",
    arguments: ["wormhole", "participant"])
  func copies(program: String) throws {
    let path = try BuiltProgram.path(program)
    // The linker has said why.
    guard path.contains("/quick/") else { return }
    #expect(try !loaded(by: path).contains { $0.contains("swift") || $0.contains("Foundation") })
  }

  /// The libraries that a program loads at its start.
  private func loaded(by program: String) throws -> [Substring] {
    let outcome = try Session().shell(
      "LD_TRACE_LOADED_OBJECTS=1 '\(program)' | sed 's/ =>.*//; s/^[[:space:]]*//'")
    let names = outcome.output.split(separator: "\n")
    #expect(names.contains { $0.hasPrefix("libc.so") }, "\(outcome)")
    return names
  }
}
