import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCommand

/// Stopped processes whose numbers say nothing here.
@Suite(
  "Of a process in another namespace it is said that it cannot be seen", .blocking,
  .enabled(if: Namespaces.arePossible))
struct UnseenProcessTests {
  @Test("by the list of peers, for people and for programs")
  func peer() throws {
    let outcome = try Session().shell(
      Namespaces.inside + #"""
        mkfifo gate; inside wormhole peer serve p -- cat 2>gate & outer=$!
        exec 3<gate; read -r word <&3; halt $outer
        wormhole peer list | grep -c 'is active; whether it runs cannot be seen from here'
        wormhole peer list --json | grep -c 'is active; whether it runs cannot be seen from here'
        wormhole presence list --json | grep -c '"state":"unknown"'
        end $outer
        """#, within: .seconds(60))
    #expect(outcome.output == "1\n1\n0\n", "\(outcome)")
  }

  @Test("by doctor and status, and by the error of one that waits for it")
  func holder() throws {
    let outcome = try Session().shell(
      Namespaces.inside + #"""
        wormhole send a 1; echo x >f
        mkfifo in; inside wormhole update a -- sh -c 'echo in >in; exec sleep 60' & outer=$!
        read -r word <in; halt $outer
        wormhole doctor | tr '\n' ' ' | tr -s ' ' | grep -c 'whether its holder runs cannot be seen'
        wormhole doctor --json | grep -c '"kind":"unseenHolder"'
        wormhole status | grep -c 'whose state cannot be seen from here'
        end $outer
        """#, within: .seconds(60))
    #expect(outcome.output == "1\n1\n1\n", "\(outcome)")
  }

  @Test(
    "It is overtaken all the same where the table of locks names it, and is stopped",
    arguments: ["update x", "lock f"])
  func paused(_ holder: String) throws {
    let outcome = try Session().shell(
      Namespaces.inside + #"""
        echo 0 >f; mkfifo in
        inside wormhole \#(holder) -- sh -c 'echo in >in; exec sleep 60' & outer=$!
        read -r word <in
        wormhole \#(holder) --timeout 0.4 -- true 2>"$T/null"; test $? = 0 || echo busy
        tree() { for child in $(pgrep -P $1); do echo $child; tree $child; done; }
        for process in $(tree $outer); do kill -STOP $process; stopped $process; done
        wormhole \#(holder) --timeout 20 -- echo 2 >out; cat out; wormhole read x 2>"$T/null"
        end $outer
        """#, within: .seconds(60))
    #expect(outcome.output == "busy\n2\n", "\(holder): \(outcome)")
  }

  @Test(
    "Locks are looked at once for all members, and a lock that does not wait hardly waits for one")
  func costs() throws {
    let outcome = try Session().shell(
      Namespaces.inside + #"""
        for n in 1 2 3; do
          mkfifo in$n; inside wormhole presence enter r -- sh -c "echo in >in$n; exec sleep 60" &
          all="$all $!"; read -r word <in$n
        done
        strace -f -qq -e trace=openat,openat2 -o calls wormhole presence list r >members
        wc -l <members; grep -c proc/locks calls
        echo x >f; mkfifo gate; inside wormhole watch f 2>gate & all="$all $!"; outer=$!
        exec 3<gate; read -r word <&3; halt $outer
        for try in 1 2 3 4 5 6 7 8; do
          start=$(date +%s%N); wormhole lock -n f -- true 2>said
          if test $(($(date +%s%N) - start)) -lt 1900000000; then echo soon; break; fi
        done
        grep -c 'went on without an answer of the presenter' said
        end $all
        """#, within: .seconds(90))
    #expect(outcome.output == "4\n1\nsoon\n1\n", "\(outcome)")
  }
}

private enum Namespaces {
  /// `inside COMMAND` runs it in a namespace of its own; `halt` stops it there, and `end` ends all of it.
  static let inside = """
    test "$(id -u)" = 0 || map=--map-root-user
    inside() { unshare $map --mount --pid --fork --kill-child --mount-proc "$@"; }
    halt() { for child in $(pgrep -P $(pgrep -P $1 || echo $1)) $(pgrep -P $1); do
      kill -STOP $child; stopped $child; done; }
    end() { for outer; do kill -KILL $(pgrep -P $outer) $outer; done; }

    """

  static let arePossible: Bool = {
    do {
      let trial = try Session().shell(inside + "inside strace -o \"$T/null\" true")
      if trial.status != 0 { print("skipped: no namespaces, or no strace: \(trial.errors)") }
      return trial.status == 0
    } catch {
      print("skipped: no such namespaces here: \(error)")
      return false
    }
  }()
}
