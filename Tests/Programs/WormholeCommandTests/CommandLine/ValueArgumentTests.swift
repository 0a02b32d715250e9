import Synchronization
import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A value on the command line", .blocking)
struct ValueArgumentTests {
  @Test("is JSON, a word, text or bytes, and is printed as it came with --format raw")
  func forms() throws {
    let outcome = try Session().shell(
      """
      wormhole send a hello; wormhole read a; wormhole read a --format raw
      wormhole send a 'true story'; wormhole read a
      wormhole send a true; wormhole read a
      wormhole send a true --as string; wormhole read a
      wormhole send a '{"x":[1]}' --as string; wormhole read a --format raw
      printf 'a\\000\\377' | wormhole send a --as data; wormhole read a --format raw | od -An -tx1; wormhole read a
      printf '{"y":2}' >file; wormhole send a --file file; wormhole read a; wormhole read a --format raw
      wormhole read a --format plist >file; wormhole send b --as plist --file file; wormhole read b
      wormhole defaults write k plain; wormhole defaults read k
      wormhole log append l hello; wormhole log read l
      """)
    #expect(outcome.status == 0)
    let expected = """
      "hello"
      hello
      "true story"
      true
      "true"
      {"x":[1]}
       61 00 ff
      {"$data":"YQD/"}
      {"y":2}
      {"y":2}
      {"y":2}
      "plain"
      1
      "hello"

      """
    #expect(outcome.output == expected, "\(outcome.errors)")
    // Only at a terminal a line says that a word was taken as a string.
    #expect(outcome.errors == "")
  }

  @Test("that can be nothing of what it is said to be is refused, and nothing is sent")
  func refused() throws {
    let outcome = try Session().shell(
      """
      wormhole send a hello --as json; echo $?
      wormhole send a null; echo $?
      wormhole send a '{hello'; echo $?
      wormhole send a '[true' ; echo $?
      printf '\\377' | wormhole send a --as string; echo $?
      printf 'hello' | wormhole send a; echo $?
      printf 'bplist00' | wormhole send a --as plist; echo $?
      wormhole send a --as string --as data x; echo $?
      wormhole send a x --file x; echo $?
      wormhole send a --file missing; echo $?
      wormhole read a; echo $?
      """)
    #expect(outcome.output == "65\n65\n65\n65\n65\n65\n65\n64\n64\n74\n1\n", "\(outcome.errors)")
  }

  /// The end of a line used to be sought in all of its pieces whenever one more came.
  @Test("is a line of any length, in however many pieces it comes", .timeLimit(.minutes(1)))
  func longLine() throws {
    let pieces = Mutex(0)
    var environment = CommandEnvironment(
      variable: { _ in nil }, writeStandardOutput: { _ in }, writeStandardError: { _ in })
    environment.readInput = {
      let place = pieces.withLock { pieces in
        pieces += 1
        return pieces
      }
      return Array((place < 100_000 ? "a" : place == 100_000 ? "\r\n\nbc\nd" : "").utf8)
    }
    var lines: [Int] = []
    try environment.forEachLine(ofFile: nil, keepsReturn: false) { lines.append($0.count) }
    #expect(lines == [99_999, 0, 2, 1])
  }
}
