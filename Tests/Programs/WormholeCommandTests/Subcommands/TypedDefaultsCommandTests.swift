import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("defaults takes the words of defaults(1)", .blocking)
struct TypedDefaultsCommandTests {
  private let line = Invocations()

  @Test("A value has the type that the word before it says", .bothEngines)
  func types() throws {
    let outcome = try Session().shell(
      """
      cd "$T"
      w() { wormhole defaults write k "$@" && wormhole defaults read k; }
      w -string 5
      w -data 00fF
      w -int -5
      w -float 5
      w -bool YES
      w -date 2001-01-01T00:00:00Z
      w -array one -string 2 3 -bool no
      w -dict left -int 1 right '[1]' -int 2
      w -array
      w -string -- -x
      """)
    let expected = """
      "5"
      {"$data":"AP8="}
      -5
      5.0
      true
      {"$date":"2001-01-01T00:00:00Z"}
      ["one","2",3,false]
      {"-int":2,"left":1,"right":[1]}
      []
      "-x"

      """
    #expect(outcome.output == expected, "\(outcome.errors)")
  }

  @Test(
    "What is no value of its type is refused as usage",
    arguments: [
      ["-int", "x"], ["-int", "18446744073709551616"], ["-float", "inf"], ["-float", ""],
      ["-bool", "maybe"], ["-date", "today"], ["-data", "0"], ["-data", "0g"], ["-int"],
      ["-int", "1", "2"], ["-dict", "a"], ["-array", "-array", "1"], ["-array", "-int"],
      ["1", "2"],
      ["--as", "string", "-int", "1"],
    ])
  func refused(_ words: [String]) {
    #expect(line.refusal(["defaults", "write", "k"] + words) != nil)
  }

  @Test("A word of a type needs a key before it, and is an unknown option elsewhere")
  func places() {
    #expect(line.refusal("defaults", "write", "-int", "5")?.contains("'<key>'") == true)
    #expect(line.refusal("send", "k", "-int", "5")?.contains("unknown option '-int'") == true)
  }

  @Test("Additions of several processes at the same time are all kept", .bothEngines)
  func additions() throws {
    let outcome = try Session().shell(
      """
      add() { for i in 1 2 3 4 5 6 7 8; do
        wormhole defaults write list -array-add "$1$i"; wormhole defaults write map -dict-add "$1$i" -int $i
      done; }
      add a & add b & add c & wait
      wormhole defaults read list | tr , '\\n' | wc -l
      wormhole defaults read map | tr , '\\n' | wc -l
      wormhole defaults write list -dict-add a 1; echo $?
      wormhole defaults write map -array-add a; echo $?
      wormhole defaults read list | tr , '\\n' | wc -l
      """)
    #expect(outcome.output == "24\n24\n65\n65\n24\n", "\(outcome.errors)")
    #expect(
      outcome.errors == """
        wormhole: cannot add to "list": its type is array, and it must be dictionary; write or remove it first
        wormhole: cannot append to "map": its type is dictionary, and it must be array; write or remove it first

        """)
  }

  @Test("A suite is removed in one step, and leaves nothing", .bothEngines)
  func suites() throws {
    let outcome = try Session().shell(
      """
      wormhole defaults write seats 7 --suite hall; wormhole defaults write row 70 --suite hall
      wormhole defaults write row 1
      start defaults watch --suite hall --count 2 >"$T/heard"
      wormhole defaults remove --suite hall 2>"$T/said"; echo $?
      wormhole defaults remove row --all --suite hall 2>"$T/said"; echo $?
      wormhole defaults remove --all --suite hall; echo $?; wait $pid; sort "$T/heard"
      wormhole defaults read --suite hall; echo $?
      wormhole defaults remove --all --suite hall; echo $?
      wormhole defaults read
      wormhole defaults remove --all; wormhole status | grep -c DEFAULTS
      """)
    #expect(
      outcome.output == """
        64
        64
        0
        {"key":"row","old":70}
        {"key":"seats","old":7}
        1
        1
        {"row":1}
        0

        """, "\(outcome.errors)")
  }

  @Test("Values leave and come as JSON, which holds everything that they can be")
  func json() throws {
    let outcome = try Session().shell(
      """
      wormhole defaults export --format json
      wormhole defaults write data -data 01ff; wormhole defaults write float -float 1
      wormhole defaults export --format json | tee all.json
      wormhole defaults import all.json --format json --merge --suite copy
      wormhole defaults export --suite copy --format json
      echo '{"a":1}' | wormhole defaults import - --format json --replace; wormhole defaults read
      echo '[1]' | wormhole defaults import - --format json --replace; echo $?; wormhole defaults read
      """)
    #expect(
      outcome.output == """
        {}
        {"data":{"$data":"Af8="},"float":1.0}
        {"data":{"$data":"Af8="},"float":1.0}
        {"a":1}
        65
        {"a":1}

        """, "\(outcome.errors)")
  }
}
