import Testing
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

@Suite("A look at a name that nobody has used", .blocking, .waiting) struct UnusedNameTests {
  /// The names of all that the container keeps: its files, or its keys.
  private func names(_ session: Session) throws -> [String] {
    if let location = try TestEngine.current.location(of: session.container) {
      let etcd = try EtcdContainer.unopened(location)
      return try etcd.client.read(etcd.keys, keysOnly: true, until: .now + .seconds(10))
        .items.map { String(decoding: $0.key, as: UTF8.self) }
    }
    let found = try session.shell("cd \"$C\" && find . | sort")
    return found.output.split(separator: "\n").map(String.init)
  }

  // `ls`, `queue list` and the completion used to show these names ever after.
  @Test("leaves nothing behind, however it ends, and sees what comes", .bothEngines)
  func leavesNothing() throws {
    let session = try Session()
    let looks = [
      "presence wait never", "notify wait never", "listen never", "queue take never",
      "log read --follow never",
    ]
    let made = try session.shell(
      "wormhole send used 1; wormhole peer send used 2 >\"$T/id\"; wormhole peer receive used --count 1"
    )
    #expect(made.output == "2\n", "\(made)")
    let before = try names(session)
    let ends = try session.shell(
      looks.map { look in
        """
        wormhole \(look) --timeout 0.05 2>"$T/said"; echo $?
        \(look.hasPrefix("presence") ? "" : "start \(look)\nkill -KILL $pid; finish 2>\"$T/said\"; echo $?")

        """
      }.joined())
    let statuses = looks.map { $0.hasPrefix("presence") ? "124\n" : "124\n137\n" }.joined()
    #expect(ends.output == statuses, "\(ends)")
    let after = try names(session)
    #expect(after == before)
    // One that is killed has been the receiver for the name, and a sweep removes what it has made.
    let receiving = try session.shell(
      """
      for what in receive 'receive --files $T'; do
        eval "wormhole peer $what never --timeout 0.05"; echo $?
        start peer $(eval "echo $what") never; kill -TERM $pid; finish; echo $?
      done
      """)
    #expect(receiving.output == "124\n0\n124\n0\n", "\(receiving)")
    let afterReceiving = try names(session)
    #expect(afterReceiving == before)
    let comes = try session.shell(
      """
      start queue take never; wormhole queue put never 5 >"$T/id"; finish; echo $?
      start queue take other --follow; kill -TERM $pid; finish; echo $?
      start notify wait never --count 1; wormhole notify post never; finish; echo $?
      start listen never --count 1; wormhole send never 7; finish; echo $?
      """)
    #expect(comes.output == "5\n0\n0\nnever\n0\n7\n0\n", "\(comes)")
  }
}
