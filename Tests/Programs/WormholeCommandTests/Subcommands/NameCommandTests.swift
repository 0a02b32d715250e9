import Testing
import WormholeTestSupport

@Suite("wormhole ls", .blocking, .bothEngines) struct NameCommandTests {
  @Test("ls prints what matches, by kind and name, and leaves out what is empty")
  func names() throws {
    let outcome = try Session().shell(
      """
      wormhole ls; echo $?
      for name in film-2 film-1 'a b' cleared; do wormhole send "$name" 1; done
      wormhole remove cleared
      wormhole notify set film-3 7; wormhole notify set cleared 1; wormhole notify post cleared
      wormhole notify remove cleared; wormhole notify remove cleared 2>"$T/said"; echo $?
      wormhole queue put film-4 1 >"$T/null"
      wormhole presence enter film-5 -- wormhole ls
      wormhole ls 'film-[12]' --only value
      wormhole ls '?ilm-4' --json
      wormhole ls 'nothing*'; echo $?
      wormhole ls film-5; echo $?
      """)
    #expect(
      outcome.output == """
        1
        1
        value         a b
        value         film-1
        value         film-2
        notification  film-3
        queue         film-4
        presence      film-5
        film-1
        film-2
        {"kind":"queue","name":"film-4"}
        1
        1

        """, "\(outcome)")
  }

  @Test("ls -l shows all that is known under a name, and the version changes with every change")
  func everything() throws {
    let outcome = try Session().shell(
      """
      version() { wormhole ls -l x --json | grep -o '"version":"[^"]*"'; }
      wormhole send x 1; first=$(version); second=$(version); test "$first" = "$second"; echo $?
      wormhole send x 1; test "$(version)" = "$first"; echo $?
      wormhole read x --details | grep -cF "$(version)"
      wormhole notify set x 7
      wormhole queue put x 1 >"$T/null"
      wormhole presence enter x -- wormhole ls -l x |
        sed -E '/^      /d; s/^(  (version|place|queue) +).*/\\1…/; s/2[0-9T:-]+Z/TIME/g; s/process [0-9]+/process N/; s/(le)\\)( on | since ).*/\\1)…/'
      wormhole ls -l nothing 2>"$T/said"; echo $?
      wormhole send y 1 --expires 600
      wormhole ls -l nothing y --json 2>"$T/said" | grep -c '"expires":'
      """)
    #expect(
      outcome.output == """
        0
        1
        1
        x
          value         43 B, sent TIME by process N (wormhole)
          version       …
          place         …
          notification  state 7
          queue         …
          presence      process N (wormhole)…
        1
        1

        """, "\(outcome)")
  }
}

@Suite("wormhole listen with patterns", .blocking, .bothEngines) struct ListenPatternTests {
  @Test("Messages that match are printed with their names, also new ones, and no others")
  func patterns() throws {
    let outcome = try Session().shell(
      """
      wormhole send film-1 0; wormhole send other 0
      start listen 'film-*' 'a[1]' --count 5 >"$T/heard"
      hear() { wormhole send "$1" "$2"; says "$T/heard" "\\"$1\\",\\"message\\":$2"; }
      hear film-1 1; wormhole send other 1; hear film-2 2; wormhole remove film-2; hear film-2 3
      # A name that is exactly the pattern's text is heard, too.
      hear 'a[1]' 4; hear a1 5
      finish; echo $?; cat "$T/heard"
      """)
    #expect(
      outcome.output == """
        0
        {"identifier":"film-1","message":1}
        {"identifier":"film-2","message":2}
        {"identifier":"film-2","message":3}
        {"identifier":"a[1]","message":4}
        {"identifier":"a1","message":5}

        """, "\(outcome)")
  }

  @Test(
    "--current begins with what is there, and a command learns the name, the time and the sender")
  func current() throws {
    let outcome = try Session().shell(
      """
      wormhole send b 2; wormhole send a 1; wormhole send gone 1; wormhole remove gone
      wormhole listen '*' --current --count 2 2>"$T/null" -- sh -c '
        echo "$(cat) $WORMHOLE_IDENTIFIER $WORMHOLE_SENDER"
        expr "$WORMHOLE_TIME" : "2[0-9]*-[01][0-9]-[0-3][0-9]T.*Z$" >/dev/null || echo no time'
      wormhole listen a --current --count 1 2>"$T/null" -- sh -c '
        echo "$(cat) $WORMHOLE_IDENTIFIER $WORMHOLE_SENDER"'
      """)
    #expect(
      outcome.output == """
        {"identifier":"a","message":1} a wormhole
        {"identifier":"b","message":2} b wormhole
        1 a wormhole

        """, "\(outcome)")
  }
}

@Suite("wormhole destroy", .blocking) struct DestroyCommandTests {
  @Test(
    "Everything is removed, but only with --yes, and not while a process is there", .bothEngines)
  func destroy() throws {
    let outcome = try Session().shell(
      """
      wormhole send x 1; wormhole queue put x 1 >"$T/null"
      wormhole destroy 2>"$T/said"; echo $?
      wormhole presence enter till -- wormhole destroy --yes 2>"$T/said"; echo $?
      grep -c 'present as "till"' "$T/said"
      wormhole read x
      wormhole destroy --yes; echo $?
      wormhole read x 2>"$T/said"; echo $?; wormhole queue list x --next; echo $?
      wormhole destroy --yes 2>"$T/said"; echo $?
      wormhole send x 2; wormhole read x
      for answer in n y; do
        printf "$answer\\n" | script -qfec 'stty cols 80; wormhole destroy; echo "status $?"' /dev/null |
          tr -d '\\r' | grep -o 'with everything in it. .y/N.\\|status .'
      done; wormhole read x 2>"$T/said"; echo $?
      wormhole send x 2
      wormhole presence enter till -- wormhole destroy --yes --in-use 2>"$T/said"; echo $?
      """)
    let question = "with everything in it? [y/N]"
    let asked = "\(question)\nstatus 1\n\(question)\nstatus 0\n"
    #expect(outcome.output == "64\n75\n1\n1\n0\n1\n1\n1\n2\n" + asked + "1\n0\n", "\(outcome)")
  }

  @Test(
    "Files that programs keep beside it stay, unless they are asked for; a group's directory goes")
  func files() throws {
    let outcome = try Session().shell(
      """
      wormhole send x 1; echo hello >"$C/kept"; mkdir "$C/folder"
      wormhole destroy --yes; ls -A "$C"
      wormhole send x 1; wormhole destroy --yes --with-files; ls -A "$C"
      unset WORMHOLE_CONTAINER; export XDG_DATA_HOME="$T/data" WORMHOLE_GROUP=group.test
      wormhole send x 1; wormhole ls --groups; wormhole destroy --yes; wormhole ls --groups
      ls -A "$T/data/app-groups"
      """)
    #expect(outcome.output == "folder\nkept\ngroup.test\n", "\(outcome)")
    #expect(
      outcome.errors.hasSuffix("because it is not of the container: folder, kept\n"), "\(outcome)")
  }

  @Test("One name that cannot be read hides none of the others")
  func unreadable() throws {
    let outcome = try Session().shell(
      """
      for name in a b c; do wormhole send $name 1; done; echo junk >"$C/values/b/value.plist"
      ln -s /etc "$C/values/link"; wormhole queue put q 1 >"$T/id"
      wormhole read c b a 2>said; echo $?; wormhole read '*' 2>said; echo $?; wormhole ls 2>said; echo $?
      grep -c 'values/link' said
      """)
    #expect(
      outcome.output == """
        {"identifier":"c","message":1}
        {"identifier":"a","message":1}
        65
        {"identifier":"a","message":1}
        {"identifier":"c","message":1}
        65
        value         a
        value         b
        value         c
        queue         q
        65
        1

        """, "\(outcome)")
  }
}
