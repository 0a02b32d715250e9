import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholePeers

private let isPossible: Bool = {
  let obstacle = MountNamespace.obstacle(to: "mount -t tmpfs tmpfs .")
  if let obstacle { print("skipped: no mounts here: \(obstacle)") }
  return obstacle == nil
}()

@Suite("When the file system is full, guaranteed messages", .blocking, .enabled(if: isPossible))
struct MessageDiskTests {
  @Test("are refused with the reason, no stored one is lost, and all works again with room")
  func full() throws {
    let mounts = try MountNamespace()
    try mounts.run("mkdir disk && mount -t tmpfs -o mode=700,size=128k tmpfs disk")
    let container = try SharedContainer(path: mounts.inside + "/disk")
    let phone = try PeerSession("phone", in: container)
    let watch = try PeerSession("watch", in: container)
    try phone.setContext("before", for: "watch")
    for number in 0..<3 { try phone.enqueue(PropertyListValue(number), to: "watch") }
    let receiver = try watch.receiveMessages()
    let first = try #require(try receiver.next(until: .now))
    try mounts.run("(cat /dev/zero >disk/filling) 2>/dev/null || true")

    for options in [PeerMessageOptions(), .init(durability: .durable, keepsReceipt: true)] {
      let error = try #require(throws: WormholeError.self) {
        try phone.enqueue(3, to: "watch", options: options)
      }
      #expect(error.code == .noSpace && error.remedy?.contains("df") == true, "\(error)")
      #expect(error.reason.contains("/disk/own/queues/"), "\(error)")
    }
    let error = try #require(throws: WormholeError.self) {
      try phone.setContext("after", for: "watch")
    }
    #expect(error.code == .noSpace)
    #expect(try watch.context(from: "phone") == "before")
    // Stored messages can be received without any room.
    try first.acknowledge()
    try #require(try receiver.next(until: .now)).acknowledge()

    try mounts.run("rm disk/filling")
    try phone.enqueue(4, to: "watch")
    var left: [PropertyListValue] = []
    while let message = try receiver.next(until: .now) {
      left.append(message.value)
      try message.acknowledge()
    }
    #expect(left == [2, 4])
    #expect(try phone.messageTransfers().isEmpty)
  }
}
