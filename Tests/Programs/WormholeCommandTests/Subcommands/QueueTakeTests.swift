import Testing
import WormholeTestSupport

@Suite("Taking from a queue, when something fails", .blocking)
struct QueueTakeTests {
  /// Each used to become a failed one, though none had run.
  @Test("gives a command back that it cannot run for want of descriptors, and leaves the others")
  func shortage() throws {
    let few = """
      few='strace -D -f -qq -o /dev/null -e trace=memfd_create -e inject=memfd_create:error=EMFILE'

      """
    guard Session.succeeds(few + "$few true", missing: "strace") else { return }
    let outcome = try Session().shell(
      few + """
        for i in 1 2; do
          wormhole queue put jobs -- sh -c 'echo $WORMHOLE_ATTEMPT >>"$T/heard"' >"$T/null"
        done
        $few wormhole queue take jobs --run --drain --retries 1; echo $?
        wormhole queue list jobs --json | grep -o '"status":"[a-z]*"'
        wormhole queue take jobs --run --drain; echo $?; cat "$T/heard"
        """)
    #expect(
      outcome.output == "74\n\"status\":\"waiting\"\n\"status\":\"waiting\"\n0\n1\n1\n",
      "\(outcome)")
    #expect(outcome.errors.contains("cannot run sh: Too many open files"), "\(outcome)")
  }
}
