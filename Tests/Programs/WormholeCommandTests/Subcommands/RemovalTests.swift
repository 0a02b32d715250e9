import Testing
import WormholeTestSupport

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
      """, within: .seconds(60))
    let round = ["removed"]
    let expected = (1...3).flatMap { round + Array(repeating: "\($0)", count: 3) }
    #expect(outcome.output.split(separator: "\n").map(String.init) == expected, "\(outcome)")
  }

  // The receiver used to note its end in the directory that was being removed, and the next one,
  // which waited for that, to create it again.
  @Test("Neither a receiver, which ends, nor the next one, which waits for that, disturbs `rm -r`")
  func receivers() throws {
    let outcome = try Session().shell(
      """
      receive() {
        wormhole peer receive d </dev/null >"$T/lines" 2>"$T/receiver-$1" & pids="$pids $!"
      }
      receiving() {
        until grep -qs listening "$T/receiver-$1"; do
          # On a busy machine it may have found no container after its patience.
          kill -0 $! 2>"$T/null" || receive $1
          sleep 0.02
        done
      }
      waiting() {
        place=$(printf 'ino:%x ' "$(stat -c %i "$C"/own/consumers/*)")
        until grep -qs "$place" /proc/$!/fdinfo/*; do sleep 0.02; done
      }
      receive 0; receiving 0
      for round in 1 2 3 4; do
        receive $round; waiting
        rm -r "$C" && echo removed $round
        mkdir -m 700 "$C"
        receiving $round
      done
      kill $pids 2>"$T/null"; wait; cat "$T"/receiver-* >&2
      """, within: .seconds(60))
    let expected = (1...4).map { "removed \($0)\n" }.joined()
    #expect(outcome.output == expected, "\(outcome)")
  }
  // It entered its name once more to remove what it had made, and a slow `rm -r` failed.
  @Test("A receiver that ends because its name is removed touches nothing of what is still there")
  func slowRemoval() throws {
    let outcome = try Session().shell(
      """
      wormhole peer receive d </dev/null >"$T/lines" 2>"$T/said" & receiver=$!
      says "$T/said" listening
      rm -r "$C"/own/consumers "$C"/own/queues/*/taken
      wait $receiver; echo $?; cd "$C" && find . | sort
      """, within: .seconds(60))
    let queue = "own/queues/peer%2Fd%2Fmessages"
    let left = ["./container.plist", "./own", "./own/queues", "./" + queue]
    let parts = ["outcomes", "pending", "staged"].map { "./\(queue)/\($0)" }
    let lines = outcome.output.split(separator: "\n").map(String.init)
    #expect(Array(lines.dropFirst(2)) == left + parts, "\(outcome)")
  }

  // The advice was to make the directory, which the next use of a group does.
  @Test("A listener of a group whose container is removed says what makes it again, and goes on")
  func group() throws {
    let outcome = try Session().shell(
      """
      unset WORMHOLE_CONTAINER; export WORMHOLE_GROUP=group.test XDG_DATA_HOME="$T/data"
      wormhole send x 1; wormhole listen x --count 1 >"$T/heard" 2>"$T/said" & listener=$!
      says "$T/said" listening; rm -r "$T/data/app-groups/group.test"
      says "$T/said" 'no such directory'; wormhole send x 2; wait $listener
      cat "$T/heard"; sed -n 's/.*no such directory; //p' "$T/said"
      """, within: .seconds(60))
    #expect(outcome.output == "2\nthe next use of the group makes it\n", "\(outcome)")
  }

  @Test("A process that waits for a notification does not end when its container is removed")
  func notification() throws {
    let outcome = try Session().shell(
      """
      unset WORMHOLE_CONTAINER; export WORMHOLE_GROUP=group.test XDG_DATA_HOME="$T/data"
      wormhole notify post n; wormhole send m 0
      start notify wait n --count 2 >"$T/posts"
      wormhole listen m >"$T/heard" 2>"$T/said" & listener=$!
      says "$T/said" listening
      rm -r "$T/data/app-groups/group.test"; says "$T/said" 'no such directory'
      mkdir -p -m 700 "$T/data/app-groups/group.test"; wormhole send m 1; hears 1
      cat "$T/posts"; echo posts; wormhole notify post n; says "$T/posts" n
      kill $listener; kill $pid; finish; wc -l <"$T/posts"
      """, within: .seconds(60))
    #expect(outcome.output == "posts\n1\n", "\(outcome)")
  }

  @Test("Observers go over when a link above their container is pointed elsewhere")
  func link() throws {
    let outcome = try Session().shell(
      """
      mkdir 1 2; mkdir -m 700 1/c 2/c; ln -s 1 current; export WORMHOLE_CONTAINER="$T/current/c"
      in2() { WORMHOLE_CONTAINER="$T/2/c" wormhole "$@"; }
      for i in 1 2; do WORMHOLE_CONTAINER="$T/$i/c" wormhole log append l "$i" >"$T/id"; done
      wormhole notify post n; in2 notify post n
      wormhole log read --follow l >"$T/heard" 2>"$T/followed" & follower=$!
      start notify wait n --count 1 >"$T/posts"; says "$T/followed" listening
      wormhole listen m --count 1 >"$T/message" 2>"$T/said" & listener=$!
      says "$T/said" listening
      ln -s 2 new; mv -T new current
      in2 log append l 3 >"$T/id"; in2 send m 4; wait $listener; hears 3; cat "$T/message" "$T/posts"
      in2 notify post n; finish; cat "$T/posts"; kill $follower
      """, within: .seconds(60))
    #expect(outcome.output == "4\nn\n", "\(outcome)")
  }

  @Test("A process that follows a log goes on when the container is removed and made again")
  func followedLog() throws {
    let outcome = try Session().shell(
      """
      wormhole log append l 1 >"$T/id"
      wormhole log read --follow l >"$T/heard" 2>"$T/said" & follower=$!
      hears 1; rm -r "$C"; mkdir -m 700 "$C"
      wormhole log append l 2 >"$T/id"; hears 2; echo heard; kill $follower
      """, within: .seconds(60))
    #expect(outcome.output == "heard\n", "\(outcome)")
  }
}
