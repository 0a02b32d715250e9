import Testing
import WormholeTestSupport

@testable import WormholeCommand

/// The kernel gives a command no thread, or fewer than it needs.
@Suite("Without a thread a command ends in its time, and says so", .blocking)
struct NoThreadTests {
  /// What takes threads away: a function of the shell that runs a command so.
  enum Shortage: String, CaseIterable {
    case again = "clone,clone3:error=EAGAIN"
    case refused = "clone,clone3:error=EPERM"
    case noEventCounter = "eventfd2:error=EPERM"
    case one = "1"
    case two = "2"
    case three = "3"

    /// `few COMMAND` becomes the command; so a signal to it reaches the command.
    var function: String {
      guard rawValue.count > 1 else {
        return """
          pids=$(test -e /sys/fs/cgroup/cgroup.controllers && echo /sys/fs/cgroup || echo /sys/fs/cgroup/pids)
          group=$(mktemp -d "$pids/wormhole-test-XXXXXX") && trap 'rmdir "$group"' EXIT
          echo \(rawValue) >"$group/pids.max" || exit 70
          few='sh -c '\\''echo $$ >"$0/cgroup.procs" && exec "$@"'\\'' "$group"'

          """
      }
      let calls = rawValue.prefix { $0 != ":" }
      return """
        few='strace -D -f -qq -o /dev/null -e trace=\(calls) -e inject=\(rawValue)'

        """
    }

    var isPossible: Bool {
      Session.succeeds(
        function + "eval \"timeout 9 $few true\"", missing: "such shortage (\(rawValue))")
    }
  }

  /// Each but the last two once hung in some of these cases.
  private static let commands = [
    "listen a", "listen a --current", "notify wait n", "defaults watch", "lock --name m -- true",
    "log read l --subscriber s", "log read --follow l",
    "presence wait r",
    "peer list --watch", "peer receive p", "peer serve p -- cat",
    "peer send p --file f --wait processed", "watch f", "monitor", "queue take none",
    "status --watch",
  ]

  @Test(
    "whatever takes the threads away, and it obeys SIGTERM",
    arguments: Shortage.allCases)
  func ends(_ shortage: Shortage) throws {
    guard shortage.isPossible else { return }
    let commands = Self.commands.joined(separator: "\n")
    let outcome = try Session().shell(
      shortage.function + #"""
        echo x >f; wormhole send a 1; wormhole log append l 1 >"$T/null"; wormhole peer send p 1 >"$T/null"
        while read -r line; do
          timed=$(printf %s "$line" | sed 's/ -- / --timeout 1&/; t; s/$/ --timeout 1/')
          case $line in "log read l "*) timed=$line; esac
          # status 137: it did not end
          eval "timeout -s KILL 20 $few wormhole $timed" >"$T/null" 2>"$T/said" </dev/null; status=$?
          case $status in
            74 | 77) grep -q 'cannot' "$T/said" || echo "$line: no sentence" ;;
            0 | 1 | 124) ;;
            *) echo "$line: $status $(cat "$T/said")" ;;
          esac
          eval "timeout -k 15 0.5 $few wormhole $line" >"$T/null" 2>"$T/said" </dev/null
          test $? = 137 && echo "$line: ignores SIGTERM"
        done <<END
        \#(commands)
        END
        wormhole read a
        """#, within: .seconds(110))
    #expect(outcome.output == "1\n", "\(outcome)")
  }

  @Test("One that follows without a thread looks five times a second, and misses nothing")
  func follows() throws {
    guard Shortage.again.isPossible else { return }
    let outcome = try Session().shell(
      Shortage.again.function + #"""
        wormhole log append l 1 >"$T/null"
        eval "$few wormhole log read --follow l --count 2" >"$T/heard" & pid=$!
        hears 1; wormhole log append l 2 >"$T/null"; wait $pid; echo $?; cat "$T/heard"
        """#, within: .seconds(60))
    #expect(outcome.output == "0\n1\n2\n", "\(outcome)")
  }

  @Test("A sandbox that refuses two calls refuses no change: others do the same")
  func sandbox() throws {
    let few = #"""
      few='strace -D -f -qq -o /dev/null -e trace=renameat2,sync_file_range -e inject='
      few=${few}renameat2,sync_file_range:error=EPERM

      """#
    guard Session.succeeds(few + "$few true", missing: "strace") else { return }
    let outcome = try Session().shell(
      few + #"""
        for round in 1 2; do
          $few wormhole send a $round; $few wormhole send a $round --durable; wormhole read a
          $few wormhole update n --add 1; $few wormhole update n -- sh -c 'echo $(($(cat) + 5))'; wormhole read n
          $few wormhole defaults write k $round; wormhole defaults read k
          $few wormhole queue put q $round --durable >"$T/null"; $few wormhole queue take q
          $few wormhole log append l $round --durable
          echo $round >f; $few wormhole lock f -- sh -c 'echo 7 >>"$1"' sh {}; cat f
        done
        """#, within: .seconds(60))
    let expected = "1\n1\n6\n1\n1\n1\n1\n7\n2\n7\n12\n2\n2\n2\n2\n7\n"
    #expect(outcome.output == expected && outcome.errors.isEmpty, "\(outcome)")
  }
}
