import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("The output of a program that is driven line by line", .blocking)
struct LineProcessTests {
  // The rest of a screen used to be wrong if a pipe delivered a character in two pieces.
  @Test("is read in whole characters")
  func characters() throws {
    let deadline = soon
    let program = try LineProcess(
      "sh", ["-c", #"printf 'a\303'; read line; printf '\251b\342\224'; read line; printf '\200'"#])
    #expect(try program.text(until: deadline) == "a")
    try program.tell("go on")
    #expect(try program.text(until: deadline) == "éb")
    try program.tell("go on")
    #expect(try program.text(until: deadline) == "─")
  }
}
