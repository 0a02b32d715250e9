import Testing
import Wormhole
import WormholeEtcd
import WormholeTestSupport

@Suite("wormhole copy", .blocking)
struct CopyCommandTests {
  @Test("copies a container to another place and back", arguments: TestEngine.available)
  func andBack(engine: TestEngine) throws {
    let session = try Session()
    let other = try engine.location(of: session.container + "-other")?.description ?? "$T/other"
    let outcome = try session.shell(
      """
      export XDG_STATE_HOME="$T/state"
      wormhole send greeting '"hello"'
      wormhole defaults write key 5
      wormhole peer launch w -- true
      echo beside >"$C/notes"
      wormhole copy "\(other)" --json | sed 's/"bytes":[0-9]*,//'
      export WORMHOLE_CONTAINER="\(other)"
      wormhole read greeting
      wormhole defaults read key
      wormhole peer launch w 2>"$T/null"; echo $?
      wormhole send greeting '"there"'
      wormhole copy "$T/back"
      export WORMHOLE_CONTAINER="$T/back"
      wormhole read greeting
      cat "$T/back/notes"
      wormhole copy "$T/back"; echo $?
      """)
    #expect(outcome.status == 0)
    let expected = """
      {"files":1,"parts":2}
      "hello"
      5
      1
      "there"
      beside
      65

      """
    #expect(outcome.output == expected, "\(outcome.errors)")
    #expect(outcome.errors.contains("something is there already"), "\(outcome.errors)")
  }

  // They copied their own copy until the disk was full.
  @Test("and backup refuse a place in the container itself, by whatever path")
  func inside() throws {
    let outcome = try Session().shell(
      """
      wormhole send a 1; ln -s "$C" "$T/link"; find "$C" | sort >before
      for place in "$C/other" "$C/values/other" "$T/link/new/other"; do
        wormhole copy "$place" --timeout 10 2>>said; echo $?
      done
      wormhole backup "$C/archive" --timeout 10 2>>said; echo $?
      grep -c 'in the container itself' said; find "$C" | sort | diff before -; wormhole copy "$C-other"
      """)
    #expect(outcome.output == "65\n65\n65\n65\n4\n", "\(outcome)")
  }

  @Test("to etcd refuses to keep this machine's files in the container itself", .needsEtcd)
  func stateInside() throws {
    let session = try Session()
    let other = try TestEngine.etcd.location(of: session.container + "-other")
    let outcome = try session.shell(
      """
      wormhole send a 1; echo beside >"$C/notes"; export XDG_STATE_HOME="$C/state"
      wormhole copy "\(try #require(other))" --timeout 10; echo $?
      """)
    #expect(outcome.output == "65\n", "\(outcome)")
  }

  @Test("refuses a container that is in use, says by whom, and copies it with --in-use")
  func inUse() throws {
    let session = try Session()
    let outcome = try session.shell(
      """
      wormhole send greeting '"hello"'
      start peer receive watch
      wormhole copy "$T/other" 2>"$T/said"; echo $?
      grep -c "($pid) uses it: it is present as" "$T/said"
      ls "$T/other" 2>"$T/null"
      wormhole copy "$T/other" --in-use && wormhole --container "$T/other" read greeting
      kill $pid
      """)
    #expect(outcome.output == "75\n1\n\"hello\"\n", "\(outcome.errors)")
  }
}
