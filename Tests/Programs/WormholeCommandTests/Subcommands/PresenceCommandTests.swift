import Testing
import WormholeTestSupport

@Suite("wormhole presence", .blocking) struct PresenceCommandTests {
  @Test("A process is present while its command runs, and has its status", .bothEngines)
  func present() throws {
    let outcome = try Session().shell(
      """
      wormhole presence list till; echo $?
      wormhole presence enter till --content '{"port":1}' -- sh -c '
        echo $WORMHOLE_IDENTIFIER
        wormhole presence list --json | sed "s/,\\"host.*isEx/,\\"isEx/; s/,\\"id.*isEx/,\\"isEx/" |
          grep -o "{\\"content.*name\\":\\"till\\""
        wormhole presence wait till --json | wc -l; exit 4' 2>"$T/said"
      echo $?
      wormhole presence list till; echo $?
      wormhole presence list
      """)
    #expect(
      outcome.output == """
        1
        till
        {"content":{"port":1},"isExclusive":false,"name":"till"
        1
        4
        1

        """, "\(outcome)")
  }

  @Test("Waiting ends when enough have come, and when the last is gone", .bothEngines)
  func waiting() throws {
    let outcome = try Session().shell(
      """
      start presence wait till --count 2 >"$T/null"
      wormhole presence enter till -- sleep 60 & one=$!
      wormhole presence enter till -- sleep 60 & two=$!
      finish; echo $?
      wormhole presence wait till --count 2 --timeout 0 >"$T/null"; echo $?
      start presence wait till --gone
      kill -TERM $one $two; wait $one; echo $?; wait $two; finish; echo $?
      wormhole presence wait till --timeout 0 2>"$T/said"; echo $?
      """)
    #expect(outcome.output == "0\n0\n143\n0\n124\n", "\(outcome)")
  }
}
