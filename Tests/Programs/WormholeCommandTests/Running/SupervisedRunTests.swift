import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeCommand

@Suite("wormhole run", .blocking)
struct SupervisedRunTests {
  @Test("starts a command that fails again, so often as it may, and ends with its status")
  func restarts() throws {
    let outcome = try Session().shell(
      """
      wormhole run --backoff 0.01 --retries 2 -- sh -c 'echo $WORMHOLE_RESTARTS; exit 3'; echo "status $?"
      wormhole run --backoff 0.01 -- sh -c 'echo x >>runs; test $(wc -l <runs) = 3'; echo "status $?"
      wormhole run --restart never -- sh -c 'kill -9 $$'; echo "status $?"
      wormhole run --restart always --backoff 0.01 --retries 1 -- echo again; echo "status $?"
      wormhole run -- true; echo "status $?"
      wormhole run -- "$T/absent"; echo "status $?"
      wormhole run --timeout 1 -- true; echo "status $?"
      """)
    #expect(
      outcome.output == """
        0
        1
        2
        status 3
        status 0
        status 137
        again
        again
        status 0
        status 0
        status 127
        status 64

        """, "\(outcome.errors)")
    let said = outcome.errors.split(separator: "\n").prefix(3)
    #expect(
      said == [
        "wormhole: sh ended with status 3; it is started again in 0.01 s (1 of 2)",
        "wormhole: sh ended with status 3; it is started again in 0.02 s (2 of 2)",
        "wormhole: sh ended with status 3",
      ])
  }

  @Test("passes signals on, also in a pause, and starts nothing after one", .bothEngines)
  func signals() throws {
    let outcome = try Session().shell(
      """
      holds wormhole run -- sh -c 'trap "exit 5" TERM; echo in >"$T/in"; while :; do sleep 0.01; done'
      kill -TERM $pid; wait $pid; echo $?
      wormhole run --backoff 600 -- false 2>said & pid=$!
      says said again
      kill -TERM $pid; wait $pid; echo $?
      """)
    #expect(outcome.output == "5\n1\n", "\(outcome.errors)")
    // What the pause said is in a file of its own.
    #expect(outcome.errors.isEmpty)
  }

  @Test("is present under its name while the command runs, and both end with it", .bothEngines)
  func presence() throws {
    let outcome = try Session().shell(
      """
      export I="$T/in"
      holds wormhole run --as indexer -- sh -c 'echo $$ >child; echo in >"$I"; exec sleep 60'
      wormhole ls --only presence
      wormhole status | grep -c '^indexer *process '$pid
      kill -KILL $pid; gone $pid; gone $(cat child)
      wormhole status | grep -c '^indexer'
      """)
    #expect(outcome.output == "indexer\n1\n0\n", "\(outcome.errors)")
  }

  @Test("with --alone waits for the one that runs, also when that one is stopped", .bothEngines)
  func alone() throws {
    let outcome = try Session().shell(
      """
      export I="$T/in"
      holds wormhole run --as one --alone -- sh -c 'echo in >"$I"; exec sleep 60'
      kill -STOP $pid; stopped $pid
      wormhole run --as one --alone --timeout 0.3 -- echo never; echo $?
      kill -CONT $pid
      wormhole run --as one --alone -- echo second & other=$!
      kill -TERM $pid; wait $pid; echo $?
      wait $other; echo $?
      """)
    #expect(
      outcome.output == "124\n143\nsecond\n0\n" || outcome.output == "124\nsecond\n143\n0\n",
      "\(outcome.output)\(outcome.errors)")
  }

  @Test(
    "pauses longer after each failure, up to a minute, and forgets failures after a steady minute")
  func policy() {
    var policy = RestartPolicy(occasion: .onFailure, retries: 8, backoff: .seconds(1))
    let short = Duration.seconds(1)
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
      #expect(policy.pause(after: .exited(1), of: short) == .seconds(seconds))
    }
    #expect(policy.pause(after: .killed(signal: 9), of: short) == nil)
    #expect(policy.pause(after: .exited(1), of: .seconds(60)) == .seconds(1))
    #expect(policy.restarts == 1)
    #expect(policy.pause(after: .exited(0), of: short) == nil)

    var always = RestartPolicy(occasion: .always, retries: 1, backoff: .seconds(120))
    #expect(always.pause(after: .exited(0), of: short) == .seconds(120))
    #expect(always.pause(after: .exited(0), of: short) == nil)
    var never = RestartPolicy(occasion: .never, retries: 9, backoff: .zero)
    #expect(never.pause(after: .exited(1), of: short) == nil)
    var many = RestartPolicy(occasion: .onFailure, retries: .max, backoff: .seconds(1))
    for _ in 0..<100 { #expect(many.pause(after: .exited(1), of: short) ?? .zero <= .seconds(60)) }
  }
}
