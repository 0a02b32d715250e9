import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("A lost or damaged file is reported, and hides nothing else", .blocking)
struct LostFilesTests {
  @Test("Without container.plist readers find everything, and doctor writes the file again")
  func format() throws {
    let outcome = try Session().shell(
      """
      wormhole send total 41; wormhole queue put jobs 1 >said; wormhole notify set doors 3
      rm "$C/container.plist"
      wormhole read total; wormhole ls | wc -l; wormhole queue peek jobs; wormhole notify get doors
      wormhole doctor >said; echo $?; grep -c Fault said; ls "$C/container.plist" 2>said
      wormhole doctor --json | python3 -c 'import json, sys
      for found in json.load(sys.stdin)["findings"]: print(found["command"])' | sh
      ls "$C/container.plist"
      """)
    #expect(
      outcome.output.hasPrefix("41\n3\n1\n3\n1\n1\nnothing wrong\n"), "\(outcome)")
    #expect(outcome.output.hasSuffix("/container.plist\n"), "\(outcome)")
  }

  @Test("A directory with other files only is no container yet")
  func otherFiles() throws {
    let outcome = try Session().shell(
      """
      mkdir "$C/src"; touch "$C/values"
      wormhole read total; wormhole status | grep -o 'no container yet'; ls -A "$C"
      """)
    #expect(outcome.output == "no container yet\nsrc\nvalues\n", "\(outcome)")
  }
}
