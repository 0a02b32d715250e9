import Testing
import WormholeTestSupport

@Suite("The container of a command", .blocking)
struct CommandContainerTests {
  // They wrote into the container that the shell's variables name.
  @Test("is that of the program that runs it, also in another directory")
  func environment() throws {
    let outcome = try Session().shell(
      #"""
      mkdir -m 700 other
      W="wormhole --container other"
      note='cd /; echo "$0 $WORMHOLE_CONTAINER" >>"$T/heard"; cat'
      {
        $W presence enter p -- sh -c "$note" enter
        $W lock --name p -- sh -c "$note" lock
        $W queue put q 1; $W queue take q -- sh -c "$note" take
        $W peer send w 1; $W peer receive w --count 1 -- sh -c "$note" receive
        $W update m --default 1 -- sh -c "$note" update
        $W listen m --current --count 1 -- sh -c "$note" listen
        $W log append l 1; $W log read --follow l --count 1 -- sh -c "$note" follow
      } </dev/null >"$T/null" 2>said
      start --container other peer serve w --count 1 -- sh -c "$note" serve
      $W peer request w 1 >"$T/null"; finish
      sed "s|$T|T|" heard
      """#)
    let names = ["enter", "lock", "take", "receive", "update", "listen", "follow", "serve"]
    #expect(outcome.output == names.map { "\($0) T/other\n" }.joined(), "\(outcome)")
  }

  @Test("gives way to the one that the command names by the other variable")
  func otherVariable() throws {
    let outcome = try Session().shell(
      """
      wormhole send m 1
      wormhole listen m --current --count 1 -- \
        sh -c 'cat >"$T/null"; WORMHOLE_GROUP=group.other wormhole send z 5' 2>"$T/null"
      wormhole --group group.other read z
      """)
    #expect(outcome.output == "5\n", "\(outcome)")
  }
}
