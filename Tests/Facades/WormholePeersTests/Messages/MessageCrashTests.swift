import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite("Guaranteed messages, whatever happens to their processes,", .blocking, .bothEngines)
struct MessageCrashTests {
  let scene: MessageScene

  init() throws { scene = try MessageScene() }

  @Test("outlive a killed sender, which finds them again, a killed receiver, and both")
  func killed() throws {
    let sender = try scene.participant()
    #expect(try sender.ask("message-send phone watch 0 3 \(scene.log("sent"))") == "done")
    try sender.end()
    let first = try scene.participant()
    #expect(try first.ask("message-receive watch") == "done")
    #expect(try first.ask("message-next watch") == "phone 0")
    #expect(try first.ask("message-acknowledge watch") == "done")
    #expect(try first.ask("message-next watch") == "phone 1")
    try first.end()
    let second = try scene.participant()
    #expect(try second.ask("message-receive watch") == "done")
    #expect(try second.ask("message-next watch") == "phone 1 again")
    try second.end()
    try scene.phone.enqueue(3, to: "watch")
    #expect(try scene.drain() == ["phone 1 again", "phone 2", "phone 3"])
  }

  @Test("are neither lost nor reordered, and only repeated if marked, while all are killed")
  func flow() throws {
    let seed = TestSeed.next("MESSAGE_SEED")
    var random = seed.generator
    let (sent, heard) = (scene.log("sent"), scene.log("heard"))
    var receiver = try Self.receiver(scene, heard)
    for _ in 0..<TestEngine.current.times(8) {
      // One number may have been stored without its sender's knowledge, so the next one begins
      // after it.
      let next = (try scene.lines(sent).last.flatMap { Int($0) } ?? -1) + 2
      let sender = try scene.participant()
      try sender.tell("message-send phone watch \(next) 1000 \(sent)")
      let few = Int.random(in: 1...12, using: &random)
      try eventually("it sends") { try (Int(scene.lines(sent).last ?? "") ?? 0) >= next + few }
      if Bool.random(using: &random) {
        try receiver.end()
        receiver = try Self.receiver(scene, heard)
      }
      try sender.end()
    }
    try receiver.end()
    let all = try scene.lines(heard) + scene.drain()
    var known: [Int] = []
    for line in all {
      let words = line.split(separator: " ")
      let number = try #require(Int(words[1]), "\(line); \(seed)")
      if known.contains(number) {
        #expect(words.last == "again", "\(line) came twice unmarked; \(seed)")
      } else {
        known.append(number)
      }
    }
    #expect(known == known.sorted(), "reordered; \(seed)")
    let stored = try scene.lines(sent).compactMap { Int($0) }
    #expect(Set(stored).subtracting(known).isEmpty, "lost; \(seed)")
    // At most the one that each killed sender could not note.
    #expect(known.count <= stored.count + 8)
  }

  private static func receiver(_ scene: MessageScene, _ log: String) throws -> Participant {
    let receiver = try scene.participant()
    #expect(try receiver.ask("message-handle watch \(log)") == "done")
    return receiver
  }

  @Test("are cancelled or delivered, never both, while another process receives")
  func cancelling() throws {
    let log = scene.log("heard")
    let receiver = try Self.receiver(scene, log)
    var cancelled: Set<Int> = []
    var transfers: [PeerMessageTransfer] = []
    let count = TestEngine.current.times(60)
    for number in 0..<count {
      let transfer = try scene.phone.enqueue(PropertyListValue(number), to: "watch")
      transfers.append(transfer)
      if try transfer.cancel() { cancelled.insert(number) }
    }
    for (number, transfer) in transfers.enumerated() {
      let end = try transfer.finalStatus(until: soon)
      #expect(end == (cancelled.contains(number) ? .cancelled : .processed), "\(number)")
    }
    let heard = try scene.lines(log)
    #expect(heard == (0..<count).filter { !cancelled.contains($0) }.map { "phone \($0)" })
    try receiver.end()
  }
}
