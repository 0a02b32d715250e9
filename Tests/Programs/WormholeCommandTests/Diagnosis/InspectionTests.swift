import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("Status and doctor examine everything and change nothing", .blocking)
struct InspectionTests {
  /// Everything that could make a reader wait, follow, read or list for ever.
  private static let planting = """
    set -e
    wormhole send damaged 1
    cd "$C/values"
    for name in damaged directory fifo link huge lease held flood; do wormhole send $name 1; done
    echo garbage >damaged/value.plist
    rm directory/value.plist fifo/value.plist link/value.plist
    mkdir directory/value.plist
    mkfifo fifo/value.plist stray
    ln -s /dev/zero link/value.plist
    truncate -s 4T huge/value.plist
    rm -r lease/lease && mkfifo lease/lease
    mkdir -p held/lease/held/in-the-way
    mkfifo held/lease/prepared-1 held/lease/broken-1 held/lease/held/x-1
    (cd flood && touch $(seq 3000))
    mkdir "$T/elsewhere" && ln -s "$T/elsewhere" "$C/quarantine"
    mkfifo "$C/notifications"
    printf 'name with a\\nline' | xargs -0 touch

    """

  private static let listing = "find \"$C\" -printf '%p %y %s %m %T@\\n' | sort"

  @Test("Whatever lies in a container, an inspection ends, reports and changes nothing")
  func looks() throws {
    let session = try Session()
    #expect(try session.shell(Self.planting).status == 0)
    let before = try session.shell(Self.listing).output
    let status = try session.shell("wormhole status --json")
    #expect(try session.shell(Self.listing).output == before)
    let doctor = try session.shell("wormhole doctor")
    // Doctor makes and removes an entry in the container's own directory, whose time shows that.
    let after = try session.shell(Self.listing).output
    #expect(after.split(separator: "\n").dropFirst() == before.split(separator: "\n").dropFirst())
    #expect(status.status == 0, "\(status)")
    #expect(status.output.contains("\"isPartial\":true"))
    #expect(doctor.status == 1, "\(doctor)")
    for name in ["damaged", "directory", "fifo", "link", "huge"] {
      #expect(doctor.output.contains("The value \"\(name)\" cannot be read"), "\(doctor)")
      #expect(doctor.output.contains("doctor --quarantine value:\(name)\n"), "\(doctor)")
    }
    for place in ["lease/lease", "held/lease/held/in-the-way", "stray"] {
      #expect(doctor.output.contains("rm -r \(session.container)/values/\(place)\n"), "\(doctor)")
    }
  }

  @Test("Each of doctor's commands repairs its finding")
  func mending() throws {
    let session = try Session()
    #expect(try session.shell(Self.planting).status == 0)
    // The quarantine is a link, and quarantined files must not go to its target.
    let script = """
      for round in 1 2 3 4; do
        wormhole doctor --json | python3 -c '
      import json, subprocess, sys
      # The limits of the machine are not mended, because other programs have them, too.
      findings = [f for f in json.load(sys.stdin)["findings"] if f["kind"] != "watchLimit"]
      for finding in findings:
        if "command" in finding: subprocess.run(finding["command"], shell=True)
      sys.exit(len(findings) > 0)
      ' >>"$T/mended" 2>&1 && echo mended && exit
        (cd "$C/values/flood" && rm -f $(seq 3000))
      done
      wormhole doctor
      """
    let outcome = try session.shell(script)
    #expect(outcome.output == "mended\n", "\(outcome)\n\(session.listing)")
    #expect(try session.shell("wormhole send held 2 && wormhole read held").output == "2\n")
    #expect(try session.shell("ls -A \"$T/elsewhere\"").output == "")
  }

  @Test("The sweep leaves entries in use alone")
  func sweep() throws {
    let session = try Session()
    let outcome = try session.shell(
      """
      wormhole send seats 1
      wormhole update seats -- sh -c 'mkdir "$C/values/.new-1"; touch "$C/.container-1a2b3c4d5e6f.plist"
        wormhole doctor --sweep; ls "$C/values/seats/lease/held"; echo 2' >"$T/none"
      ls -A "$C" "$C/values"
      wormhole read seats
      """)
    // The command's output is not JSON; the test is that the files and the lease are there.
    #expect(outcome.output.contains(".container-1a2b3c4d5e6f.plist"), "\(outcome)")
    #expect(outcome.output.contains(".new-1"), "\(outcome)")
    #expect(outcome.output.hasSuffix("1\n"), "\(outcome)")
  }

  @Test("The sweep removes what creations left at the top, and no directory of the user's")
  func creations() throws {
    let session = try Session()
    let outcome = try session.shell(
      """
      wormhole send seats 1
      mkdir "$C/.new-1a2b3c4d5e6f" "$C/.new-york"
      touch "$C/.container-1a2b3c4d5e6f.plist"
      touch -d "1 hour ago" "$C"/.[cn]*
      wormhole doctor --sweep >"$T/none"
      ls -A "$C"
      """)
    #expect(outcome.output == ".new-york\ncontainer.plist\nvalues\n", "\(outcome)")
  }

  @Test("What a sweep leaves, because a running process uses it, is no fault")
  func leftoverInUse() throws {
    let outcome = try Session().shell(
      """
      wormhole send seats 1; touch "$C/values/seats/lease/prepared-1a2b"; mkfifo "$T/out"
      holds wormhole update seats -- sh -c 'echo in >"$T/in"; cat "$T/out"'
      wormhole doctor --sweep >"$T/said"; echo $?; grep -c Fault "$T/said"
      echo 2 >"$T/out"; wait $pid; wormhole read seats
      wormhole doctor --sweep | grep -c "^removed .*prepared-1a2b"
      """)
    #expect(outcome.output == "0\n0\n2\n1\n", "\(outcome)")
  }

  // NAMES=2000 sets the number.
  @Test("Names that were used once leave nothing after a sweep, which reports their number")
  func namesUsedOnce() throws {
    let session = try Session()
    let container = try SharedContainer(path: session.container)
    let count = Program.environment("NAMES").flatMap { Int($0) } ?? 200
    for number in 0..<count {
      let value = container.value("job/\(number)")
      try value.replace(with: .integer(Int64(number)))
      try value.remove()
    }
    var removed = 0
    // A name whose removal is just being flushed to the disk stays until the next sweep.
    try eventually("the names are gone") {
      let output = try session.shell("wormhole doctor --sweep").output
      let words = output.split(whereSeparator: \.isWhitespace)
      if words.first == "removed", words.count > 1 { removed += Int(words[1]) ?? 0 }
      #expect(output.withoutInotifyWarning.hasSuffix("nothing wrong\n"), "\(output)")
      return try session.shell("ls -A \"$C/values\"").output.isEmpty
    }
    #expect(removed == count)
  }

  @Test(
    "Without watches listeners poll and report it, and doctor names the limit to raise",
    .enabled(if: UserNamespaces.arePossible, "needs user namespaces"))
  func polling() throws {
    let session = try Session()
    let outcome = try session.shell(
      """
      echo 0 >/proc/sys/user/max_inotify_instances
      wormhole send seats 1
      start listen seats --count 1 --timeout 100 || echo "$word"
      wormhole send seats 2
      finish
      start notify wait doors --count 1 --timeout 100 || echo "$word"
      wormhole notify post doors
      finish
      wormhole doctor --strict
      """, with: UserNamespaces.wrapper)
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.contains("2") && lines.contains("doors"), "\(outcome)")
    #expect(outcome.output.contains("\"seats\" is checked five times a second"), "\(outcome)")
    #expect(outcome.output.contains("sysctl fs.inotify.max_user_instances="), "\(outcome)")
    #expect(outcome.status == 1, "\(outcome)")
  }
}

/// The lowering of a kernel limit for a script alone, if it is possible.
enum UserNamespaces {
  static let wrapper = ["unshare", "--map-root-user"]

  static let arePossible: Bool = {
    do {
      let trial = try Session().shell(
        "echo 0 >/proc/sys/user/max_inotify_instances", with: wrapper)
      if trial.status != 0 { print("skipped: no user namespaces here: \(trial.errors)") }
      return trial.status == 0
    } catch {
      print("skipped: no user namespaces here: \(error)")
      return false
    }
  }()
}
