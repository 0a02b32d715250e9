import Testing
import WormholeTestSupport

@Suite("An unused group", .blocking)
struct GroupTests {
  private static let prologue = """
    unset WORMHOLE_CONTAINER; export XDG_DATA_HOME="$T/data"
    wormhole --group group.real send seats 1; before=$(find "$T/data" | sort)

    """

  @Test(
    "is reported as missing by commands that only read, which create nothing",
    arguments: [
      ("read seats", 1), ("remove seats", 1), ("remove --all", 1), ("defaults read", 1),
      ("defaults read key", 1), ("defaults remove key", 1), ("defaults export", 1),
      ("notify get doors", 1), ("status", 1), ("status --json", 1), ("doctor", 1),
      ("peer list", 1), ("peer transfers phone", 1), ("peer context phone", 1),
      ("peer context phone --remove", 1), ("peer pairing", 1),
      ("peer pairing --remove watch", 1),
      ("peer pairing --activate watch", 1), ("peer launch x", 1), ("peer launch --remove x", 1),
      ("peer transfers --remove x", 1), ("listen seats --timeout 0.01", 124),
      ("notify wait doors --timeout 0.01", 124), ("defaults watch --timeout 0.01", 124),
      ("peer list --watch --timeout 0.01", 124),
    ] as [(String, Int32)])
  func looked(command: String, status: Int32) throws {
    let outcome = try Session().shell(
      Self.prologue + """
        for group in bad group. 'group.a b' group.x/y group.rael; do
          wormhole --group "$group" \(command) >"$T/out" 2>"$T/said"; status=$?
          test $status = \(status) || { echo "status $status for $group"; cat "$T/out" "$T/said"; }
          grep -qF "group" "$T/said" "$T/out" || echo "not said for $group"
        done
        grep -hoF "group.real" "$T/said" "$T/out" | sort -u
        test "$before" = "$(find "$T/data" | sort)" || find "$T/data"
        """)
    #expect(outcome.output == "group.real\n", "\(outcome)")
  }

  // It went to the default place, as if the variable were not set.
  @Test("is not made elsewhere when the place of groups is a directory")
  func directoryOfGroups() throws {
    let outcome = try Session().shell(
      Self.prologue + """
        WORMHOLE_GROUPS="$T/groups" wormhole --group g send a 1 || echo refused
        WORMHOLE_GROUPS= wormhole --group group.real read seats
        """)
    #expect(outcome.output == "refused\n1\n", "\(outcome)")
    #expect(outcome.errors.contains("WORMHOLE_GROUPS names a directory"), "\(outcome)")
  }

  @Test(
    "is awaited by a listener, which gets the first message",
    arguments: [
      ("listen seats", "send seats 7", "7"),
      ("notify wait doors", "notify post doors", "doors"),
      ("defaults watch", "defaults write volume 7", #"{"key":"volume","new":7}"#),
    ])
  func awaited(listener: String, writer: String, heard: String) throws {
    let outcome = try Session().shell(
      Self.prologue + """
        export WORMHOLE_GROUP=group.new
        start \(listener) --count 1 --timeout 100 || echo "$word"
        wormhole \(writer); finish; echo $?
        """)
    #expect(outcome.output == heard + "\n0\n", "\(outcome)")
    #expect(outcome.errors.contains("group \"group.new\" has no container yet"), "\(outcome)")
  }
}
