import Testing
import Wormhole
import WormholeTestSupport

@Suite("Processes that take from one queue", .blocking)
struct QueueJobsTests {
  /// ```
  /// this process          the command
  /// has the queue alone
  ///                       waits to join, says so
  /// ends
  ///                       takes 1
  /// ```
  /// It used to give up after ten seconds, so that of many that joined at once only some began.
  @Test("wait as long as others keep them from joining")
  func joining() throws {
    let session = try Session()
    let queue = try SharedContainer(location: session.container).queue("jobs")
    let alone = try queue.consume()
    let begin = try session.shell(
      """
      timeout 100 wormhole queue take jobs --follow >"$T/heard" 2>"$T/said" & echo $! >taker
      wormhole queue take jobs --timeout 0.1; echo $?
      says "$T/said" 'waiting to take from "jobs": process'
      """)
    let reason = "cannot take from \"jobs\": process "
    alone.close()
    let rest = try session.shell(
      """
      wormhole queue put jobs 1 >"$T/null"; hears 1
      kill $(cat taker); gone $(cat taker); grep -c waiting "$T/said"
      """)
    #expect(begin.output == "124\n" && begin.errors.contains(reason), "\(begin)")
    #expect(rest.output == "1\n", "\(rest)")
  }
}
