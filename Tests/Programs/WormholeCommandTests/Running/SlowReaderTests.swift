import Testing
import WormholeTestSupport

@Suite("A command that prints deliveries", .blocking)
struct SlowReaderTests {
  /// ```
  /// the reader                   the command
  /// reads some bytes, and waits
  ///                              fills the pipe
  ///                              gets SIGTERM, or its time has passed: ends
  /// ```
  /// The command used to wait for the reader, without an end.
  @Test(
    "ends when it gets a signal, or its time has passed, although nobody reads",
    arguments: [
      ("queue put big", "queue take big"), ("peer send big", "peer receive big --count 1"),
    ])
  func full(_ send: String, _ receive: String) throws {
    let outcome = try Session().shell(
      """
      head -c 300000 /dev/zero | tr '\\0' x | wormhole \(send) - --as string >"$T/null"
      mkfifo p
      (exec 3<p; head -c 1 <&3 >got; until test -e over; do sleep 0.05; done) &
      wormhole \(receive) >p 2>"$T/null" & pid=$!; until test -s got; do sleep 0.01; done
      kill -TERM $pid; wait $pid; echo $?
      wormhole \(receive) --timeout 1 >p 2>said; echo $?
      grep -c 'the reader is too slow; the .* is delivered again' said
      : >over; wait
      wormhole \(receive) --timeout 0 2>"$T/null" | wc -c
      """, within: .seconds(60))
    #expect(outcome.output == "143\n124\n1\n300003\n", "\(outcome)")
  }
}
