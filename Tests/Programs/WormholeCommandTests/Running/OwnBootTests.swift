import Testing
import WormholeTestSupport

/// Containers of processes that share a directory, each with a boot id of its own, as systemd-nspawn(1)
/// makes them.
@Suite(
  "A process in a container with a boot id of its own",
  .blocking, .enabled(if: OwnBoots.arePossible, "needs namespaces"))
struct OwnBootTests {
  @Test("keeps its role and its entry as long as it lives, and loses both with its life")
  func living() throws {
    let outcome = try Session().shell(
      OwnBoots.inside + """
        mkfifo "$T/out"; exec 4<>"$T/out"; working='echo in >"$T/in"; read -r end <"$T/out"'
        holds inside wormhole lock --name l -- sh -c "$working"
        wormhole lock --nonblock --name l -- echo taken; echo $?
        echo end >&4; wait $pid; wormhole lock --name l -- echo free
        wormhole queue put q 7 >"$T/id"
        holds inside wormhole queue take q --retries 0 --timeout 20 -- sh -c "$working; false"
        wormhole queue take q --timeout 0.2; echo $?
        echo end >&4; wait $pid; wormhole queue list q | grep -c failed
        """)
    #expect(outcome.output == "1\nfree\n124\n1\n", "\(outcome)")
  }

  // Its position was that of another start of the machine, whose last messages may be lost.
  @Test("gets no message of a log again that it has acknowledged, in the next container either")
  func acknowledged() throws {
    let outcome = try Session().shell(
      OwnBoots.inside + """
        wormhole log append l 1
        holds inside wormhole log read --follow l --subscriber s --count 2 -- sh -c 'cat; echo in >"$T/in"'
        wormhole log append l 2; wait $pid
        inside wormhole log read l --subscriber s; echo $?
        inside wormhole log append l 3; wormhole log append l 4
        inside wormhole log read l --subscriber s; wormhole log read l --subscriber s; echo $?
        """)
    #expect(outcome.output == "1\n1\n2\n2\n1\n3\n4\n3\n4\n1\n", "\(outcome)")
  }
}

private enum OwnBoots {
  /// A function of the shell that runs a command in a new container.
  static let inside = """
    test "$(id -u)" = 0 || map=--map-root-user
    inside() {
      cat /proc/sys/kernel/random/uuid >"$T/boot"
      unshare $map --mount --pid --fork --kill-child --mount-proc sh -c '
        mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"' "$T/boot" "$@"
    }

    """

  static let arePossible = Session.succeeds(inside + "inside true", missing: "such containers")
}
