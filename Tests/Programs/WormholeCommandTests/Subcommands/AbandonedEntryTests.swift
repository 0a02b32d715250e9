import Testing
import WormholeTestSupport

@Suite("An entry of a worker that has ended", .blocking) struct AbandonedEntryTests {
  // It was shown as taken until the next 'queue take', and 'queue remove' refused it.
  @Test("waits again, and can be removed", .bothEngines)
  func waits() throws {
    let outcome = try Session().shell(
      #"""
      for value in 1 2 3; do wormhole queue put jobs $value >"$T/null"; done
      wormhole queue take jobs -- false 2>"$T/said"
      wormhole queue list jobs --json | grep -c '"status":"waiting"'
      wormhole queue list --json | grep -o '"taken":.\|"waiting":.'; wormhole queue list jobs --next --count 2 --json | jq -c .value
      id=$(wormhole queue list jobs | sed -n '2s/ .*//p')
      wormhole queue remove jobs "$id"; echo $?
      wormhole queue take jobs --details | grep -o '"redelivery":.*,"sender\|"value":.'
      """#)
    #expect(
      outcome.output == """
        3
        "taken":0
        "waiting":3
        1
        2
        0
        "redelivery":false,"sender
        "value":2

        """, "\(outcome)")
  }
}
