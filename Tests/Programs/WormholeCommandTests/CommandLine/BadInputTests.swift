import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("Bad input gets a clear error and a status, and changes nothing", .blocking)
struct BadInputTests {
  /// A container with two messages: `seats`, and one that must not change.
  private func session() throws -> Session {
    let session = try Session()
    let outcome = try session.shell("wormhole send seats 1 && wormhole send other '\"intact\"'")
    #expect(outcome.status == 0, "\(outcome)")
    return session
  }

  private func expectIntact(_ session: Session, _ names: [String: String] = ["other": "\"intact\""])
    throws
  {
    for (name, value) in names {
      let outcome = try session.shell("wormhole read \(name)")
      #expect(outcome.output == value + "\n" && outcome.status == 0, "\(outcome)")
    }
  }

  /// Expects one line that begins with the program's name and contains each of the parts.
  private func expectError(
    _ outcome: Session.Outcome, _ status: Int32, _ parts: String...,
    at location: SourceLocation = #_sourceLocation
  ) {
    #expect(outcome.status == status, "\(outcome)", sourceLocation: location)
    #expect(outcome.errors.hasPrefix("wormhole: "), "\(outcome)", sourceLocation: location)
    for part in parts {
      #expect(outcome.errors.contains(part), "\(outcome)", sourceLocation: location)
    }
  }

  // MARK: Identifiers and values

  @Test("An empty identifier and one that is not UTF-8 are usage errors")
  func identifiers() throws {
    let session = try session()
    expectError(try session.shell("wormhole send '' 2"), 64, "must not be empty", "Usage:")
    expectError(
      try session.shell(#"wormhole send "$(printf 'a\377')" 2"#), 64,
      "argument 2 is not valid UTF-8")
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  // The path was repaired, and so another file was used.
  @Test("A path that is not UTF-8 is refused, whether it is a variable, a link or a directory")
  func paths() throws {
    let session = try session()
    let odd = #"odd=$(printf 'a\377'); mkdir "$odd"; "#
    expectError(
      try session.shell(odd + #"WORMHOLE_CONTAINER="$T/$odd" wormhole send a 1"#), 64,
      "WORMHOLE_CONTAINER is not valid UTF-8")
    expectError(
      try session.shell(
        #"unset WORMHOLE_CONTAINER; odd=$(printf 'a\377')"#
          + #"; XDG_DATA_HOME="$T/$odd" wormhole --group g send a 1"#), 74,
      "this path is not valid UTF-8; set XDG_DATA_HOME")
    let outside = try session.shell(
      #"""
      odd=$(printf 'a\377'); twin=$(printf 'a\357\277\275'); mkdir "$twin"
      ln -s "$odd" link; ln -s "$odd/f" file
      cd "$odd"; echo 1 >f; wormhole lock f -- rm -f "$T/$twin/f" f; echo $?; cd ..
      wormhole watch link --timeout 0; echo $?
      wormhole lock file -- sh -c 'echo 2 >"$WORMHOLE_FILE"'; echo $?
      cat "$odd/f"; ls -A "$twin"
      """#)
    #expect(outside.output == "74\n74\n74\n1\n", "\(outside)")
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  @Test("A command gets a variable that is not UTF-8 as it is")
  func variable() throws {
    let outcome = try session().shell(
      #"""
      ODD=$(printf 'a\377'); export ODD
      wormhole lock f -- sh -c 'printf %s "$ODD"' | od -An -tx1
      """#)
    #expect(outcome.output == " 61 ff\n", "\(outcome)")
  }

  @Test(
    "A text that begins like JSON and is none says how it is sent",
    arguments: ["2026-11-25", "1.2.3", "+5", ".5.6"])
  func text(_ word: String) throws {
    let session = try session()
    expectError(
      try session.shell("wormhole send seats \(word)"), 65, "bad JSON",
      "; --as string takes it as a text")
    let broken = try session.shell("wormhole send seats '{'")
    expectError(broken, 65, "bad JSON")
    #expect(!broken.errors.contains("--as"), "\(broken)")
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  @Test("A long identifier works, and one like a path stays inside the container")
  func odd() throws {
    let session = try session()
    let before = try session.shell("ls -A \"$T\" | grep -v -e out- -e err-").output
    let script = """
      long=$(printf 'x%.0s' $(seq 10000))
      wormhole send "$long" 2 && wormhole read "$long"
      wormhole send ../../x 3 && wormhole read ../../x
      wormhole send /etc/wormhole-test 4 && wormhole read /etc/wormhole-test
      ls -A "$C"
      """
    let outcome = try session.shell(script)
    #expect(outcome.output == "2\n3\n4\ncontainer.plist\nvalues\n", "\(outcome)")
    #expect(try session.shell("ls -A \"$T\" | grep -v -e out- -e err-").output == before)
    #expect(try session.shell("test -e /etc/wormhole-test").status == 1)
    try expectIntact(session)
  }

  @Test(
    "A path or a word is a string", arguments: ["/a", "./backup", "~/x", "*.txt", "-x", "a b", "@"])
  func word(_ text: String) throws {
    let session = try session()
    #expect(
      try session.shell("wormhole send seats -- '\(text)'; wormhole read --format raw seats").output
        == text + "\n")
  }

  @Test("A value that is not JSON is reported with its position")
  func value() throws {
    let session = try session()
    expectError(
      try session.shell("printf '{\\n  \"a\": tru }' | wormhole send seats"), 65,
      "line 2, column 8", "the value on standard input")
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  @Test("A standard input without an end is refused before it fills the memory")
  func endless() throws {
    let session = try session()
    expectError(
      try session.shell("wormhole send seats </dev/zero"), 65,
      "standard input: it has more than 256 MiB")
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  // MARK: The container

  @Test("A container that is missing, loose, a file or a link is refused with the remedy")
  func refused() throws {
    let session = try session()
    let container = session.container
    expectError(
      try session.shell("chmod 777 \"$C\"; wormhole send seats 2"), 77, container, "mode is 777",
      "chmod 0700 '\(container)'")
    expectError(
      try session.shell(
        "chmod 700 \"$C\"; ln -s \"$C\" \"$T/link\"; wormhole --container \"$T/link\" read seats"),
      77, "/link", "symbolic link")
    expectError(
      try session.shell("touch \"$T/file\"; wormhole --container \"$T/file\" read seats"), 65,
      "/file", "not a directory")
    expectError(
      try session.shell(
        "mkdir -m 755 \"$T/other\"; wormhole --container \"$T/other\" read seats"), 77,
      "mode is 755", "chmod 0700 '", "/other'")
    expectError(
      try session.shell("unset WORMHOLE_CONTAINER; HOME=home wormhole --group group.x send a 1"),
      74, "HOME is 'home', a relative path", "set HOME")
    expectError(
      try session.shell("wormhole --container \"$T/missing\" read seats"), 74, "/missing",
      "mkdir -m 0700")
    expectError(
      try session.shell("unset WORMHOLE_CONTAINER; wormhole read seats"), 64, "--group ID",
      "WORMHOLE_CONTAINER")
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  @Test(
    "A container of another user is refused", .enabled(if: Program.effectiveUser == 0, "needs root")
  )
  func foreign() throws {
    let session = try session()
    expectError(
      try session.shell("chown 12345 \"$C\"; wormhole send seats 2"), 77, session.container,
      "belongs to user 12345", "chown")
    let owner = Program.effectiveUser
    #expect(try session.shell("chown \(owner) \"$C\"").status == 0)
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  @Test(
    "A read-only container can be read, and a write and doctor report why it fails",
    .enabled(if: Mounting.isPossible, "needs the right to mount"))
  func readOnly() throws {
    let session = try session()
    let outcome = try session.shell(
      """
      mount --bind "$C" "$C" && mount -o remount,bind,ro "$C" || exit 99
      wormhole read seats; wormhole doctor >"$T/doctor"; echo $?; grep -q read-only "$T/doctor" && echo said
      wormhole send seats 2
      """, with: Mounting.wrapper)
    #expect(outcome.output == "1\n1\nsaid\n", "\(outcome)")
    expectError(outcome, 77, session.container, "read-only")
    try expectIntact(session, ["seats": "1", "other": "\"intact\""])
  }

  @Test(
    "On a full disk, and without inodes, the old values stay and can be read",
    .enabled(if: Mounting.isPossible, "needs the right to mount"),
    arguments: [
      ("size=64k", "cat /dev/zero >\"$C/filling\"", "df"),
      ("nr_inodes=40", "i=0; while touch \"$C/filling-$i\"; do i=$((i + 1)); done", "df -i"),
    ])
  func full(_ options: String, _ fill: String, _ remedy: String) throws {
    let session = try Session()
    let outcome = try session.shell(
      """
      mount -t tmpfs -o mode=0700,\(options) tmpfs "$C" || exit 99
      wormhole send seats 1 && wormhole send other 2 && wormhole queue put jobs 5 >"$T/id" || exit 98
      { \(fill); } 2>"$T/full"
      wormhole send seats "\\"$(printf 'x%.0s' $(seq 5000))\\""; echo $?
      wormhole read seats && wormhole read other && wormhole notify get doors
      wormhole doctor >"$T/doctor"; echo $?; grep -c '1. Fault: Cannot write in the container' "$T/doctor"
      wormhole queue take jobs; echo $?; wormhole queue take jobs --timeout 0; echo $?
      { \(fill); } 2>"$T/full"
      wormhole remove other; echo $?; wormhole read other; wormhole send seats 4; wormhole read seats
      rm "$C"/filling* && wormhole send seats 3 && wormhole read seats
      wormhole doctor >"$T/doctor" || cat "$T/doctor" >&2
      """, with: Mounting.wrapper)
    #expect(outcome.output == "74\n1\n2\n0\n1\n1\n74\n74\n0\n4\n3\n", "\(outcome)")
    expectError(outcome, 0, session.container, "No space left on device".lowercased(), remedy)
  }

  @Test("Sixteen descriptors are enough, and too few are reported")
  func descriptors() throws {
    let session = try session()
    let outcome = try session.shell(
      """
      ulimit -n 16
      wormhole send seats 2 && wormhole read seats && wormhole update seats -- echo 3
      wormhole listen seats --current --count 1 2>"$T/said" && wormhole notify post doors
      wormhole status >"$T/status" && wormhole doctor
      """)
    let output = outcome.output.withoutInotifyWarning
    #expect(output == "2\n3\nnothing wrong\n" && outcome.status == 0, "\(outcome)")
    expectError(
      try session.shell("ulimit -n 4; wormhole send seats 4"), 74, session.container, "ulimit -n")
    try expectIntact(session, ["seats": "3", "other": "\"intact\""])
  }

  // The dispatch library ends a process to which the kernel gives no descriptor for its events.
  @Test("A transfer of a file reports too few descriptors, however few there are")
  func transferWithFewDescriptors() throws {
    let session = try session()
    let outcome = try session.shell(
      """
      echo content >"$T/file"
      for limit in 4 6 8 9 10 11 12 14; do
        (
          ulimit -c 0; ulimit -n $limit
          exec wormhole peer send nobody --file "$T/file"
        ) 2>>"$T/said"
        echo $?
      done
      grep -c 'ulimit -n' "$T/said"
      """)
    #expect(outcome.output == String(repeating: "74\n", count: 8) + "8\n", "\(outcome)")
  }

  @Test("A name that has nothing to put aside is reported")
  func nothingToPutAside() throws {
    let outcome = try session().shell("wormhole doctor --quarantine value:setas")
    let output = outcome.output.withoutInotifyWarning
    #expect(
      output == "not put aside: \"setas\" has no file\nnothing wrong\n" && outcome.status == 1,
      "\(outcome)")
  }

  // MARK: Files that are no values

  @Test(
    "A FIFO, a link or a directory in a value's place is reported without a wait, and repaired",
    arguments: [
      ("mkfifo \"$V\"", "not a regular file"), ("ln -s /etc/passwd \"$V\"", "symbolic link"),
      ("mkdir \"$V\" && touch \"$V/inside\"", "not a regular file"),
    ])
  func planted(_ plant: String, _ reason: String) throws {
    let session = try session()
    let place = "V=\"$C/values/seats/value.plist\"; "
    #expect(try session.shell("\(place) rm \"$V\"; \(plant)").status == 0)
    let path = session.container + "/values/seats/value.plist"
    expectError(
      try session.shell("wormhole read seats"), 65, path, reason,
      "'wormhole doctor' shows how to repair it")
    expectError(
      try session.shell("wormhole update seats -- echo 5"), 65, path, reason,
      "'wormhole doctor' shows how to repair it")
    let doctor = try session.shell("wormhole doctor")
    #expect(
      doctor.status == 1 && doctor.output.contains("doctor --quarantine value:seats"), "\(doctor)"
    )
    let mended = try session.shell(
      "wormhole doctor --quarantine value:seats; wormhole read seats; wormhole send seats 6")
    let output = mended.output.withoutInotifyWarning
    // The version that is kept takes its place.
    #expect(output.hasSuffix("nothing wrong\n1\n") && mended.status == 0, "\(mended)")
    #expect(try session.shell("ls -A \"$C/quarantine\" | wc -l").output == "1\n")
    try expectIntact(session, ["seats": "6", "other": "\"intact\""])
    // Sending also replaces the foreign entry with the message.
    let sent = try session.shell("\(place) rm \"$V\"; \(plant) && wormhole send seats 7")
    #expect(sent.status == 0, "\(sent)")
    try expectIntact(session, ["seats": "7", "other": "\"intact\""])
  }

  @Test("A damaged or hostile value is an error only for its own name", arguments: HostileFiles.all)
  func damaged(_ name: String, _ bytes: [UInt8]) throws {
    let session = try session()
    try session.plant(bytes, at: "values/seats/value.plist")
    let path = session.container + "/values/seats/value.plist"
    let limit: Duration = .seconds(20)
    // 1 GiB of address space, in which inflated content would not fit.
    let read = try session.shell("ulimit -v 1048576; wormhole read seats", within: limit)
    expectError(read, 65, path, "'wormhole doctor' shows how to repair it")
    expectError(try session.shell("wormhole update seats -- cat", within: limit), 65, path)
    let doctor = try session.shell("wormhole doctor", within: limit)
    #expect(doctor.status == 1 && doctor.output.contains(path), "\(doctor)")
    try expectIntact(session)
    #expect(try session.shell("wormhole doctor --quarantine value:seats").status == 0)
    #expect(try session.shell("wormhole read seats").status == 1)
    #expect(
      try session.shell("wc -c <\"$(echo \"$C\"/quarantine/*)\"").output == "\(bytes.count)\n")
  }
}

/// The mounting of file systems that no other process sees, if it is possible.
enum Mounting {
  /// The script's own mount namespace; without root also its own user namespace.
  static let wrapper =
    Program.effectiveUser == 0 ? ["unshare", "-m"] : ["unshare", "--map-root-user", "-m"]

  static let isPossible = Session.succeeds(
    "mount -t tmpfs tmpfs \"$C\"", with: wrapper, missing: "mounts")
}
