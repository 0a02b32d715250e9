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
      w() { wormhole defaults write k "$@" && wormhole defaults read k && wormhole defaults read-type k; }
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
      Type is string
      {"$data":"AP8="}
      Type is data
      -5
      Type is integer
      5.0
      Type is float
      true
      Type is boolean
      {"$date":"2001-01-01T00:00:00Z"}
      Type is date
      ["one","2",3,false]
      Type is array
      {"-int":2,"left":1,"right":[1]}
      Type is dictionary
      []
      Type is array
      "-x"
      Type is string

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
      ["--string", "-int", "1"],
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

  @Test("A key is renamed in one step, and never over another one unless that is said")
  func renaming() throws {
    let outcome = try Session().shell(
      """
      wormhole defaults write a 1; wormhole defaults write b 2
      wormhole defaults rename a b; echo $?
      wormhole defaults rename absent c; echo $?
      wormhole defaults read
      wormhole defaults rename a c; wormhole defaults read
      wormhole defaults rename c b --replace; wormhole defaults read
      wormhole defaults rename b b; wormhole defaults read
      """)
    #expect(
      outcome.output == """
        1
        1
        {"a":1,"b":2}
        {"b":2,"c":1}
        {"b":1}
        {"b":1}

        """, "\(outcome.errors)")
  }

  @Test("All suites are listed and searched; one that is damaged hides no other")
  func suites() throws {
    let outcome = try Session().shell(
      """
      wormhole defaults domains; wormhole defaults find x; echo $?
      wormhole defaults write Film '{"title":["Metropolis"]}'
      wormhole defaults write seats 7 --suite hall
      wormhole defaults write film -bool yes --suite hall
      wormhole defaults write row 70 --suite hall
      wormhole defaults write gone 1 --suite empty; wormhole defaults remove gone --suite empty
      wormhole defaults domains
      wormhole defaults find film
      wormhole defaults find METRO
      wormhole defaults find 7
      wormhole defaults find true
      wormhole defaults write a 1 --suite bad
      printf garbage >"$C/own/values/defaults%2Fbad/value.plist"
      wormhole defaults domains 2>"$T/said"; echo $?; grep -c 'cannot read the defaults' "$T/said"
      """)
    #expect(
      outcome.output == """
        1
        {"keys":1}
        {"keys":3,"suite":"hall"}
        {"key":"Film","value":{"title":["Metropolis"]}}
        {"key":"film","suite":"hall","value":true}
        {"key":"Film","value":{"title":["Metropolis"]}}
        {"key":"seats","suite":"hall","value":7}
        {"key":"film","suite":"hall","value":true}
        {"keys":1}
        {"keys":3,"suite":"hall"}
        65
        1

        """, "\(outcome.errors)")
  }

  // The advice was 'wormhole doctor', which knows only the container.
  @Test("A file outside of the container keeps its own remedy")
  func foreignFile() throws {
    let outcome = try Session().shell("wormhole defaults import . --merge; echo $?")
    #expect(outcome.output == "65\n")
    #expect(
      outcome.errors.hasSuffix("it is not a regular file; name a file\n"), "\(outcome.errors)")
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
