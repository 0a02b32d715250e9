import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

/// Three members, which are killed and stopped.
@Suite(
  "Faults of a cluster", .blocking, .needsEtcd)
struct ClusterTests {
  private let members: EtcdMembers
  private let key = Array("key".utf8)

  init() throws { members = try EtcdMembers() }

  private func client(first: Int) -> EtcdClient {
    members.client(first: first) {
      $0.patience = .seconds(1)
      $0.probeInterval = .milliseconds(300)
      $0.probePatience = .milliseconds(500)
    }
  }

  /// Counts the key up, once for each number, whatever becomes of answers.
  private func count(to number: Int, _ client: EtcdClient) throws {
    while true {
      let now = try client.read(.key(key), until: soon).items.first
      let text = now.map { String(decoding: $0.value, as: UTF8.self) }
      guard text != "\(number)" else { return }
      do throws(EtcdError) {
        _ = try client.commit(
          EtcdTransaction(
            if: [.modified(key, at: now?.modified ?? 0)],
            then: [.put(key: key, value: Array("\(number)".utf8))]), until: soon)
      } catch {
        // Whether it was made is what the next read says.
        #expect(error.code == .outcomeUnknown, "\(error)")
      }
    }
  }

  /// The place of the member that serves the watches of a client.
  private func serving(_ client: EtcdClient) throws -> Int {
    var place: Int?
    try eventually("the watches have a connection") {
      place = members.nodes.firstIndex { $0.endpoint == client.watches.endpoint }
      return place != nil
    }
    return try #require(place)
  }

  @Test(
    "a watch reports each of 300 changes once, while its member and the leader are killed and one hangs"
  )
  func changes() throws {
    let leader = try members.leader()
    let (second, third) = ((leader + 1) % 3, (leader + 2) % 3)
    // Watches begin at the second, writes at the third.
    let (watching, writing) = (client(first: second), client(first: third))
    let heard = HeardEvents()
    _ = watching.watch(.key(key), from: 1, onNews: heard.take)
    for number in 1...300 {
      try count(to: number, writing)
      switch number {
      case 75:
        try heard.wait(for: (1...75).map { "\($0)" })
        members.nodes[try serving(watching)].end()
        try eventually("the watch goes on") { heard.resumed > 0 }
      case 150:
        for node in members.nodes where !node.isRunning { try node.start() }
        members.nodes[try members.leader()].end()
      case 200: for node in members.nodes where !node.isRunning { try node.start() }
      case 225:
        let lost = watching.watches.lostConnections
        let serving = members.nodes[try serving(watching)]
        try serving.stop()
        try eventually("the silent member is left") { watching.watches.lostConnections > lost }
        try count(to: 226, writing)
        try eventually("another member reports it") { heard.values.last == "226" }
        try serving.goOn()
      default: break
      }
    }
    try heard.wait(for: (1...300).map { "\($0)" })
    #expect(heard.resumed >= 2)
    #expect(heard.end == nil)
  }

  @Test("without a quorum calls end with what each endpoint said, and a watch waits for its return")
  func quorum() throws {
    let client = client(first: (try members.leader() + 1) % 3)
    try count(to: 1, client)
    let heard = HeardEvents()
    _ = client.watch(.key(key), from: 1, onNews: heard.take)
    try heard.wait(for: ["1"])
    let left = try serving(client)
    let others = members.nodes.indices.filter { $0 != left }
    for other in others { members.nodes[other].end() }
    // The member is alive, so only its own word ends the stream.
    try eventually("the watch is ended") { client.watches.lostConnections > 0 }
    do {
      _ = try client.read(.key(key), until: .now + .milliseconds(800))
      Issue.record("there is no quorum")
    } catch {
      #expect(error.code == .unreachable)
      for node in members.nodes { #expect(error.reason.contains(node.endpoint), "\(error)") }
    }
    for other in others { try members.nodes[other].start() }
    try count(to: 2, client)
    try heard.wait(for: ["1", "2"])
  }
}
