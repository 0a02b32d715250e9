import Testing
import WormholeSystem
import WormholeTestSupport

/// A container that a Unix group shares, and its users: real ones, without the superuser's rights.
///
/// The session's directory lies under `/mnt` of a mount namespace of its own, because the directories
/// above it may be closed to others.
private struct SharedScene {
  private let session: Session

  init() throws { session = try Session() }

  private static let prologue = """
    mount --bind "$T" /mnt && cd /mnt && mkdir bin &&
      mount --bind "$(dirname "$(command -v wormhole)")" bin && chmod 755 . || exit 99
    chown 70001:70010 container && chmod 2770 container || exit 98
    export PATH="/mnt/bin:$PATH" WORMHOLE_CONTAINER=/mnt/container
    for user in 70001 70002 70003; do mkdir -m 700 home-$user && chown $user home-$user; done
    as() {
      user=$1; shift
      HOME=/mnt/home-$user setpriv --reuid=$user --regid=$user --groups=70010 "$@" </dev/null
    }
    owner() { as 70001 "$@"; }
    member() { as 70002 "$@"; }
    hostile() { as 70003 "$@"; }

    """

  func shell(_ script: String) throws -> Session.Outcome {
    try session.shell(Self.prologue + script, within: .seconds(100), with: Mounting.wrapper)
  }

  static let isPossible: Bool = {
    guard Program.effectiveUser == 0 else {
      print("skipped: only the superuser can become several users")
      return false
    }
    return Mounting.isPossible
  }()
}

@Suite("A container of several users", .blocking, .enabled(if: SharedScene.isPossible))
struct SharedContainerCommandTests {
  /// What the first user says, what the second says after it, and what the second is answered.
  private static let exchanges = [
    ("send seats 1", "read seats", "1"),
    ("send --durable seats 2", "update seats -- sed s/2/3/", ""),
    ("update seats -- sed s/3/4/", "update seats --add 1", "5"),
    ("send soon 1 --expires 600", "remove soon", ""),
    ("notify set doors 3", "notify get doors", "3"),
    ("notify post doors", "notify post doors", ""),
    ("defaults write volume 7", "defaults remove volume", ""),
    ("queue put --key k jobs 1", "queue take jobs", "1"),
    ("queue put --durable jobs 2", "queue take jobs -- cat", "2"),
    ("log append news 1", "log read --subscriber reader news", "1"),
    ("log append --durable news 2", "log read --subscriber reader news", "2"),
    ("lock --name cast -- true", "lock --name cast -- echo in", "in"),
    ("lock container/beside -- true", "lock container/beside -- echo in", "in"),
    ("peer context phone 3", "peer context phone", #"{"sent":3}"#),
    ("peer send phone 4", "peer receive phone --count 1", "4"),
    (
      "peer send phone --file container/container.plist",
      "peer receive phone --count 1 --files container", nil
    ),
    ("status", "ls", nil), ("doctor --sweep", "doctor", nil),
    ("backup home-$FIRST/backup", "backup home-$SECOND/backup", nil),
    ("copy home-$FIRST/copy-$FIRST", "copy home-$SECOND/copy-$FIRST", nil),
  ]

  @Test("serves its owner and each member, in either order")
  func members() throws {
    let lines = Self.exchanges.map { first, second, answer in
      """
      $F wormhole \(first) >said 2>&1 || { echo "$FIRST: \(first)"; cat said; }
      $S wormhole \(second) >heard 2>said || { echo "$SECOND: \(second)"; cat said; }
      \(answer.map { "test \"$(cat heard)\" = '\($0)' || { echo '\(second)'; cat heard; }" } ?? "")
      """
    }
    let outcome = try SharedScene().shell(
      """
      all() {
        F=$1 FIRST=$2 S=$3 SECOND=$4
        \(lines.joined(separator: "\n"))
      }
      all owner 70001 member 70002
      all member 70002 owner 70001
      find container ! -group 70010
      hostile rm container/container.plist && echo removed
      """)
    #expect(outcome.output == "removed\n" && outcome.status == 0, "\(outcome)")
  }

  @Test("is refused to a user who is no member, and to everybody while others may enter it")
  func strangers() throws {
    let outcome = try SharedScene().shell(
      """
      owner wormhole send seats 1
      setpriv --reuid=70004 --regid=70004 --clear-groups wormhole read seats; echo $?
      chmod 2775 container; owner wormhole read seats; echo $?
      chmod g-s container; member wormhole read seats; echo $?
      """)
    #expect(outcome.output == "77\n77\n77\n", "\(outcome)")
  }

  /// All but values had the modes and the group of their origin.
  @Test("is copied and restored into a directory that its members share, and back for its owner")
  func copied() throws {
    let outcome = try SharedScene().shell(
      """
      chmod 711 home-70001
      umask 077; mkdir home-70001/private; chown 70001:70001 home-70001/private
      export WORMHOLE_CONTAINER=/mnt/home-70001/private
      use() {
        $1 wormhole update seats --add 1; $1 wormhole queue take jobs; $1 wormhole queue put jobs 8 >said
        $1 wormhole log read --count 1 --subscriber reader news; $1 wormhole log append news 8 >said
        $1 cat $WORMHOLE_CONTAINER/files/settings
        $1 wormhole doctor
      }
      owner wormhole send seats 1
      owner wormhole queue put jobs 6 >said; owner wormhole log append news 7 >said
      owner sh -c 'cd home-70001/private; mkdir -p files own/watches/w; echo mine >files/settings'
      owner sh -c 'cd home-70001/private/own/watches/w; echo note >note; chmod 644 note'
      owner wormhole backup home-70001/backup >said
      for new in copied restored; do
        mkdir home-70001/$new; chown 70001:70010 home-70001/$new; chmod 2770 home-70001/$new
      done
      owner wormhole copy /mnt/home-70001/copied >said
      owner wormhole --container /mnt/home-70001/restored restore home-70001/backup >said
      for new in copied restored; do
        export WORMHOLE_CONTAINER=/mnt/home-70001/$new
        use member; member wormhole send new 1; owner wormhole read new
        find $WORMHOLE_CONTAINER ! -group 70010
        find $WORMHOLE_CONTAINER -type d ! -perm 2770
      done
      owner wormhole copy /mnt/home-70001/again >said
      export WORMHOLE_CONTAINER=/mnt/home-70001/again
      use owner
      stat -c %a $WORMHOLE_CONTAINER/own/watches/w/note $WORMHOLE_CONTAINER/logs/news/log.plist
      """)
    let shared = "2\n6\n7\nmine\nnothing wrong\n1\n"
    #expect(
      outcome.output == shared + shared + "3\n8\n8\nmine\nnothing wrong\n664\n600\n"
        && outcome.status == 0,
      "\(outcome)")
  }

  @Test("goes on beside a file that may not be read, and ends if a directory may not be searched")
  func refused() throws {
    let outcome = try SharedScene().shell(
      """
      refuse() { chmod 0 "$1"; }
      for n in 1 2; do owner wormhole queue put jobs $n; owner wormhole log append news $n; done >said
      refuse "$(ls -d container/queues/jobs/pending/* | head -n 1)"
      owner wormhole queue remove --all --yes jobs >said 2>&1; echo "purged: $?"; grep -c denied said
      owner wormhole queue put jobs 3 >said
      owner wormhole queue take jobs --count 2
      refuse "$(ls -d container/logs/news/entries/* | head -n 1)"
      owner wormhole log read news
      refuse container/logs/news/entries
      owner timeout -s KILL 20 wormhole log read news 2>said; echo "read: $?"; grep -c denied said
      chmod 2770 container/logs/news/entries; rm container/logs/news/entries/*
      refuse container/logs/news/log.plist
      owner wormhole doctor >said; grep -c 'appended.*denied' said; grep -e ' --quarantine' said
      chmod 660 container/logs/news/log.plist

      owner wormhole send seats 1
      member touch container/values/seats/lease/prepared-1
      member chmod 600 container/values/seats/lease/prepared-1
      owner wormhole doctor --sweep >said 2>&1; echo "swept: $?"; grep denied said
      owner wormhole update seats --add 1
      """)
    #expect(
      outcome.output == """
        purged: 77
        1
        2
        3
        2
        read: 77
        1
        1
        swept: 0
        2

        """, "\(outcome)")
  }

  /// What a member can put into the place of an entry `$E`; a directory beyond the container looks like
  /// the one that it replaces.
  private static let plants = [
    "ln -s /mnt/home-70001/beyond/\"$E\" container/\"$E\"",
    "ln -s \"$(basename \"$E\")\" container/\"$E\"",
    "mkfifo -m 666 container/\"$E\"",
    "mkdir -m 2777 container/\"$E\" && mkdir -m 777 container/\"$E\"/inside",
    "truncate -s 1T container/\"$E\" && chmod 666 container/\"$E\"",
  ]

  /// The entries that are replaced, and the commands that come across them.
  private static let places: [([String], [String])] = [
    (["container.plist", "values"], ["read seats", "send seats 7"]),
    (
      [
        "values/seats", "values/seats/value.plist", "values/seats/lease", "values/seats/lease/held",
      ],
      ["read seats", "send --timeout 1 seats 7", "remove seats"]
    ),
    (
      ["notifications/doors", "notifications/doors/state.plist"],
      ["notify post doors", "notify set doors 1", "notify get doors"]
    ),
    (
      ["queues/jobs", "queues/jobs/staged", "queues/jobs/pending", "queues/jobs/taken"],
      ["queue put --key k jobs 7", "queue take --timeout 1 jobs"]
    ),
    (
      ["logs/news", "logs/news/entries", "logs/news/log.plist"],
      ["log append news 7", "log read news"]
    ),
    (
      ["presence/cast", "presence/cast/exclusive.plist"],
      ["lock --name cast --timeout 1 -- true", "presence list cast"]
    ),
    (
      ["own/queues/peer%2Fphone%2Fmessages", "own/queues/peer%2Fphone%2Fmessages/staged"],
      ["peer send phone 7"]
    ),
  ]

  // A link in the place of the directory of a log's messages, or of a queue's, was once followed: the
  // owner's message was stored beyond the container.
  @Test(
    "with a hostile member hangs and crashes nobody, and leads nobody out of it", arguments: plants)
  func hostile(_ plant: String) throws {
    let steps = Self.places.flatMap { entries, commands in
      entries.map { "try '\($0)' " + commands.map { "'\($0)'" }.joined(separator: " ") }
    }
    let outcome = try SharedScene().shell(
      """
      for command in 'send seats 1' 'notify post doors' 'notify set doors 1' 'queue put jobs 1' \\
        'queue put --key k jobs 1' 'log append news 1' 'lock --name cast -- true' \\
        'peer send phone 1'; do owner wormhole $command >said || exit 97; done
      cp -a container before; cp -a container home-70001/beyond; chmod 700 home-70001/beyond
      look() { (cd home-70001/beyond && find . -printf '%p %y %m %i %T@\\n' | sort); }
      look >expected
      cat >plant <<'END'
      rm -rf container/"$E" && \(plant)
      END
      try() {
        export E=$1; shift
        rm -rf container; cp -a before container
        hostile sh plant || echo "not planted: $E"
        for command in "$@" 'status' 'doctor --sweep'; do
          owner timeout -s KILL 20 wormhole $command >said 2>&1
          ended=$?
          test $ended -le 124 || { echo "$ended: $E: $command"; cat said; }
        done
        look | cmp -s - expected || { echo "led out: $E: $*"; look >expected; }
      }
      \(steps.joined(separator: "\n"))
      """)
    #expect(outcome.output == "" && outcome.status == 0, "\(outcome)")
  }
}
