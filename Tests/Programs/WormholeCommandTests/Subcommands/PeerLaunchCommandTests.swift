import Testing
import WormholeEtcd
import WormholeTestSupport

@Suite("wormhole peer launch has programs started when they are needed", .blocking)
struct PeerLaunchCommandTests {
  @Test("A registered program is started once, however many requests come at once")
  func launched() throws {
    let outcome = try Session().shell(
      """
      wormhole peer launch watch --budget 2 -- sh -c '
        echo >>"$0/starts"; exec wormhole peer serve watch --count 8 -- cat' "$T"
      wormhole peer list | grep -o launchable
      for n in 1 2 3 4 5 6 7 8; do wormhole peer request watch $n --timeout 100 & done >"$T/replies"
      wait; sort "$T/replies" | tr '\\n' ' '; wc -l <"$T/starts"
      wormhole peer launch watch | grep -o '"remaining":[0-9]'
      """)
    #expect(
      outcome.output == "launchable\n1 2 3 4 5 6 7 8 1\n\"remaining\":1\n", "\(outcome)")
  }

  @Test("A second program of a peer ends at once, because another process is active")
  func second() throws {
    let outcome = try Session().shell(
      """
      start peer serve watch -- cat
      WORMHOLE_LAUNCH=watch timeout 5 wormhole peer serve watch -- cat; echo $?
      wormhole peer request watch 7; kill $pid; finish
      """)
    #expect(outcome.output == "1\n7\n", "\(outcome)")
  }

  @Test(
    "Queued work starts programs registered for it, and urgent work those registered for that only")
  func work() throws {
    let outcome = try Session().shell(
      """
      mkdir in; echo x >file
      wormhole peer launch watch --on queued -- wormhole peer receive watch --count 1 -- \\
        sh -c 'echo "$WORMHOLE_SENDER $(cat)" >>"$0"' "$T/got"
      wormhole peer send watch 1 --from phone --wait processed --timeout 100 >"$T/id"; echo $?
      wormhole peer launch watch --on urgent -- wormhole peer receive watch --count 2 -- \\
        sh -c 'cat >>"$0"' "$T/got"
      wormhole peer send watch 2 --wait processed --timeout 0.2 >"$T/id"; echo $?
      wormhole peer send watch 3 --urgent --wait processed --timeout 100 >"$T/id"; echo $?
      wormhole peer launch tablet --on queued -- \\
        wormhole peer receive tablet --files "$T/in" --count 1
      wormhole peer send tablet --file file --wait processed --timeout 100 >"$T/id"; echo $?
      cat "$T/got" in/file
      """)
    #expect(outcome.output == "0\n124\n0\n0\nphone 1\n2\n3\nx\n", "\(outcome)")
  }

  @Test("A missing program is reported when it is needed, and no sent message is lost")
  func missing() throws {
    let outcome = try Session().shell(
      """
      printf '#!/bin/sh\\n' >"$T/program"; chmod 700 "$T/program"
      wormhole peer launch watch --on request,queued -- "$T/program"; rm "$T/program"
      wormhole peer request watch 1 --timeout 100; echo $?
      wormhole peer send watch 1 >"$T/id"; echo $?
      wormhole peer launch --remove watch; wormhole peer receive watch --count 1
      wormhole peer launch watch -- "$T/program"; echo $?
      """)
    #expect(outcome.output == "69\n0\n1\n1\n", "\(outcome)")
    #expect(outcome.errors.contains("/program"), "\(outcome)")
  }

  @Test(
    "An agent starts a peer for other machines: by its registration, its occasions and its budget only",
    // The gate installs etcd.
    .disabled(if: EtcdNode.isMissing, "etcd is not installed"))
  func agent() throws {
    let session = try Session()
    let host = try EtcdNode.shared.get().endpoint.split(separator: "/").dropFirst().joined()
    let name = session.container.split(separator: "/").suffix(3).joined(separator: "-")
    // A machine is what has a directory of its own for the container.
    let outcome = try session.shell(
      """
      export WORMHOLE_CONTAINER='etcd://\(host)/\(name)'
      here() { XDG_STATE_HOME="$T/here" wormhole "$@"; }
      there() { XDG_STATE_HOME="$T/there" wormhole "$@"; }
      there peer launch watch --budget 1 -- sh -c '
        echo >>"$0/starts"; exec wormhole peer serve watch --count 4 -- cat' "$T"
      there peer launch other --on queued -- wormhole peer receive other --count 1 -- \\
        sh -c 'cat >"$0"' "$T/got"
      there peer launch broken -- sh -c 'echo out of film; exit 3'
      here peer request watch 0 --timeout 100; echo $?
      here peer send other 7 >"$T/id"
      XDG_STATE_HOME="$T/there"; export XDG_STATE_HOME; start peer launch --agent
      says "$T/got" 7
      here peer list | grep -o launchable
      for n in 1 2 3 4; do here peer request watch $n --timeout 100 & asked="$asked $!"; done >"$T/replies"
      wait $asked; sort "$T/replies" | tr '\\n' ' '; wc -l <"$T/starts"
      # A process that is ending may still have the next request.
      while pgrep -f '^wormhole peer serve watch --count 4' >"$T/ending"; do sleep 0.05; done
      here peer request watch 5 --timeout 100; echo $?
      here peer request other 5 --timeout 100; echo $?
      here peer request broken 6 --timeout 100; echo $?
      kill $pid; finish; echo $?
      here peer request broken 6 --timeout 100; echo $?
      """)
    #expect(
      outcome.output == "69\nlaunchable\nlaunchable\n1 2 3 4 1\n69\n69\n69\n0\n69\n", "\(outcome)")
    #expect(
      outcome.errors.contains("as often as its registration allows"), "the budget: \(outcome)")
    #expect(outcome.errors.contains("reports that its program"), "\(outcome)")
    #expect(outcome.errors.contains("out of film"), "the last words of the program: \(outcome)")
  }

  @Test(
    "An agent that begins while a process receives what waits starts no other",
    // The gate installs etcd.
    .disabled(if: EtcdNode.isMissing, "etcd is not installed"))
  func agentBeside() throws {
    let session = try Session()
    let host = try EtcdNode.shared.get().endpoint.split(separator: "/").dropFirst().joined()
    let name = session.container.split(separator: "/").suffix(3).joined(separator: "-")
    let outcome = try session.shell(
      """
      export WORMHOLE_CONTAINER='etcd://\(host)/\(name)' XDG_STATE_HOME="$T/here"
      wormhole peer launch watch --on queued -- sh -c 'echo another >>"$0/starts"' "$T"
      XDG_STATE_HOME="$T/there" wormhole peer send watch 1 >"$T/id"
      mkfifo "$T/end"
      holds wormhole peer receive watch --count 1 -- sh -c 'echo in >"$0/in"; cat "$0/end"' "$T"
      receiver=$pid; start peer launch --agent
      echo "received" >"$T/end"; wait $receiver; echo $?
      kill $pid; finish; echo $?; cat "$T/starts"
      """)
    #expect(outcome.output == "received\n0\n0\n", "\(outcome)")
  }
}
