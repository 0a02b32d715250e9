import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCommand

@Suite("Taking from a queue, when something fails", .blocking)
struct QueueTakeTests {
  private static let isPowerless =
    Program.effectiveUser == 0
    && Session.succeeds(
      "setpriv --bounding-set=-kill setpriv --reuid=65534 --clear-groups true", missing: "setpriv")

  /// ```
  /// first                          second
  /// its command changes its user
  /// gets a signal that it may not
  /// pass on, and waits
  ///                                finds no entry
  /// ```
  /// It used to end at once, and the second began beside the command.
  @Test("keeps the entry of a command that may not be signalled", .enabled(if: isPowerless))
  func foreignUser() throws {
    let outcome = try Session().shell(
      """
      wormhole queue put jobs 1 >"$T/null"; mkfifo "$T/go"
      holds setpriv --bounding-set=-kill wormhole queue take jobs --follow -- sh -c '
        exec 7<>"$T/go" 8>"$T/in"
        exec setpriv --reuid=65534 --clear-groups sh -c "echo in >&8; exec 8>&-; read -r x <&7"' 2>said
      kill $pid; wormhole queue take jobs --timeout 0.5; echo $?
      echo >"$T/go"; wait $pid; echo $?; wormhole queue list jobs; echo $?
      """)
    #expect(outcome.output == "124\n0\n1\n", "\(outcome)")
  }

  #if DEBUG
    /// It used to return while the command ran, so that the entry was given back.
    @Test("waits for the command's end if a step of waiting fails, and reports the error then")
    func failedWait() throws {
      let directory = try TemporaryDirectory()
      let (go, done) = (directory.path + "/go", directory.path + "/done")
      let command = ExternalCommand(
        words: ["sh", "-c", "until test -e \(go); do sleep 0.01; done; : >\(done)"])
      let polls = Atomic(0)
      let plan = Faults.Plan { call, _ in
        guard call == .poll else { return .proceed }
        let number = polls.wrappingAdd(1, ordering: .relaxed).oldValue
        if number == 1 { Faults.$plan.withValue(nil) { make(go) } }
        return number == 0 ? .fail(.tooManyOpenFilesInSystem) : .proceed
      }
      let error = #expect(throws: CommandError.self) {
        try Faults.$plan.withValue(plan) { _ = try command.run(input: []) }
      }
      #expect(try exists(done, at: Directory.current))
      #expect(error?.reason == "\(Errno.tooManyOpenFilesInSystem)")
      make(go)
    }

    private func make(_ file: String) {
      #expect(throws: Never.self) { _ = try FileDescriptor.open(file, [.writeOnly, .create]) }
    }
  #endif

  /// It ended with 1, which a script takes for an empty queue.
  @Test("ends with the signal's status while it waits, whether the queue was there or not")
  func signalled() throws {
    let outcome = try Session().shell(
      """
      for signal in TERM HUP; do
        start queue take jobs; kill -$signal "$pid"; finish; echo $?
        wormhole queue put jobs 1 >"$T/null"; wormhole queue take jobs >"$T/null"
      done
      start queue take jobs --count 2 --timeout 60; kill -TERM "$pid"; finish; echo $?
      start queue take jobs --follow; kill -TERM "$pid"; finish; echo $?
      """)
    #expect(outcome.output == "143\n129\n143\n0\n", "\(outcome)")
  }

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

  /// A line for each missing attempt used to be printed.
  @Test("shows several missing results in one line, and ignores a result with an invalid attempt")
  func foreignResults() throws {
    let outcome = try Session().shell(
      """
      id=$(wormhole queue put jobs -- true)
      for attempt in -4611686018427387904 0 4611686018427387904 1 3 9 2147483647; do
        wormhole log append jobs.results '{"id":"'$id'","attempt":'$attempt',"exit":0,"output":"",
          "value":{"command":["true"],"directory":"/"},
          "began":{"$date":"2026-01-01T00:00:00Z"},"ended":{"$date":"2026-01-01T00:00:00Z"}}' >"$T/null"
      done
      wormhole queue list jobs "$id" | head -n 99 | sed "1,/status/d; s/ *2026.*Z: /: /"
      """)
    #expect(
      outcome.output == """
          attempt 1: ended with status 0
          attempt 2  no result is kept, as when its process was killed
          attempt 3: ended with status 0
          attempts   4 to 8: no result is kept, as when their processes were killed
          attempt 9: ended with status 0
          attempts   10 to 2147483646: no result is kept, as when their processes were killed
          attempt 2147483647: ended with status 0

        """, "\(outcome)")
  }
}
