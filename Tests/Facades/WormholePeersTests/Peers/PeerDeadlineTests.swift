import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeEtcd
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite(
  "A call of a peer with a deadline, while etcd does not answer,", .blocking, .waiting, .needsEtcd)
struct PeerDeadlineTests {
  @Test("ends then, and not ten seconds later, whatever it does")
  func each() throws {
    let directory = try TemporaryDirectory()
    let node = try EtcdNode()
    try makeDirectory(directory.path + "/companion")
    let container = try SharedContainer(
      etcd: node.patientLocation, companion: directory.path + "/companion")
    let phone = try PeerSession("phone", in: container)
    let watch = try PeerSession("watch", in: container)
    let message = try phone.enqueue(1, to: "watch")
    let path = directory.path + "/file"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll([1])
    let transfer = try phone.transfer(fileAt: URL(filePath: path), to: "watch")
    try transfer.waitUntilStored(until: soon)
    let messages = try watch.receiveMessages()
    let files = try watch.receiveFiles()
    let calls = LateCalls([
      "activate": { try watch.activate(until: .now) },
      "ask": { _ = try phone.request(1, to: "watch", until: .now) },
      "wait for a message": { _ = try message.finalStatus(until: .now) },
      "wait for a file": { _ = try transfer.finalStatus(until: .now) },
      "wait until it is stored": { try transfer.waitUntilStored(until: .now) },
      "take a message": { _ = try messages.next(until: .now) },
      "take a file": { _ = try files.next(until: .now) },
      "receive messages": { _ = try phone.receiveMessages(until: .now) },
      "receive files": { _ = try phone.receiveFiles(until: .now) },
    ])
    node.end()
    let late = try calls.late()
    #expect(late == [])
    withExtendedLifetime((messages, files)) {}
  }
}
