import TestScopes
import TestSupport
import Testing

@Suite("A container that is removed while it is in use", .blocking)
struct RemovalTests {
  // They used to create missing directories again while `rm -r` was still at work: "Directory not
  // empty".
  @Test("No process disturbs `rm -r`, and all continue in the next container")
  func removal() throws {
    let outcome = try Session().shell(
      """
      begin() { start "$@" && pids="$pids $pid"; exec 3<&-; rm "$T/gate"; }
      found() { ls "$C/values" "$C/notifications" 2>/dev/null | wc -l; }
      for name in a b c; do begin peer serve $name -- cat; done
      begin listen x y >heard; begin listen x z >heard
      begin notify wait n >heard; begin defaults watch >heard
      all=$(found); others="$pids"
      for round in 1 2 3; do
        begin peer receive d
        wormhole send x $round
        rm -r "$C" && echo removed
        mkdir -m 700 "$C"
        for name in a b c; do
          until wormhole peer request $name $round 2>/dev/null; do sleep 0.05; done
        done
        until test $(found) = $all; do sleep 0.05; done
      done
      kill $others
      """)
    let round = ["removed"]
    let expected = (1...3).flatMap { round + Array(repeating: "\($0)", count: 3) }
    #expect(outcome.output.split(separator: "\n").map(String.init) == expected, "\(outcome)")
  }
}
