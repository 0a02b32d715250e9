import Testing
import Wormhole
import WormholeEtcd
import WormholePeers
import WormholePropertyLists
import WormholeTestSupport

@Suite(
  "A request on etcd", .blocking, .waiting,
  .needsEtcd)
struct RequestOnEtcdTests {
  // A call without a deadline takes ten seconds.
  @Test("ends when its caller's deadline has passed, though etcd does not answer")
  func deadline() throws {
    let directory = try TemporaryDirectory()
    let node = try EtcdNode()
    let container = try SharedContainer(
      etcd: EtcdLocation(endpoints: [node.endpoint], prefix: "test"), companion: directory.path)
    let till = try PeerSession("till", in: container)
    till.handleRequests { $0.value }
    try till.activate()
    let phone = try PeerSession("phone", in: container)
    #expect(try phone.request(7, to: "till") == 7)
    node.end()
    // One that is known, and one that is to be looked for.
    for peer in ["till", "nobody"] {
      let start = ContinuousClock.now
      let error = try peerError {
        _ = try phone.request(7, to: peer, until: .now + .milliseconds(100))
      }
      #expect([.timedOut, .clusterUnreachable].contains(error.code), "\(error)")
      #expect(ContinuousClock.now - start < .seconds(8))
    }
  }
}
