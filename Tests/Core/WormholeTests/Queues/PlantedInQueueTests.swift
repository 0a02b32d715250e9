import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

/// Each used to stop the queue for all its consumers.
@Suite("Something planted in a queue", .blocking)
struct PlantedInQueueTests {
  private let scene: QueueScene

  init() throws {
    scene = try QueueScene()
    try scene.queue.sender("a").enqueue(0)
  }

  private func expectFlow(isWorker: Bool) throws {
    let consumer = isWorker ? try scene.queue.work() : try scene.queue.consume()
    #expect(try scene.drain(consumer) == [.init("a", 0)])
    try scene.queue.sender("a").enqueue(1)
    #expect(try scene.drain(consumer) == [.init("a", 1)], "\(scene.directory.listing)")
    consumer.close()
  }

  @Test(
    "in place of an attachment is passed over",
    arguments: ["attachment-x", "attachment-y/d/"], [false, true])
  func attachment(_ name: String, isWorker: Bool) throws {
    try scene.queue.work().close()
    let free = scene.place + "/taken/free-1"
    try makeDirectory(free)
    if name.hasSuffix("/") {
      try makeDirectory(free + "/attachment-y")
      try makeDirectory(free + "/attachment-y/d")
    } else {
      try FileDescriptor.open(free + "/" + name, [.writeOnly, .create]).close()
    }
    try expectFlow(isWorker: isWorker)
  }

  @Test("as a consumer's directory, which is a file, is passed over")
  func file() throws {
    let worker = try scene.queue.work()
    #expect(try scene.drain(worker) == [.init("a", 0)])
    #expect(try worker.next(until: .now) == nil)
    let file = scene.directory.path + "/file"
    try FileDescriptor.open(file, [.writeOnly, .create]).close()
    try rename(
      FileName(file), at: Directory.current, to: FileName(scene.place + "/taken/free-2"),
      at: Directory.current)
    try eventually("it has looked") {
      try worker.next(until: .now) == nil && !scene.names("taken").contains("free-2")
    }
    try scene.queue.sender("a").enqueue(1)
    #expect(try scene.drain(worker) == [.init("a", 1)])
  }

  #if DEBUG
    @Test("as a waiting entry that may not be moved is passed over, and reported once")
    func immovable() throws {
      let planted = "0000000000000001-a-1-10.plist"
      let worker = try scene.queue.work()
      #expect(try scene.drain(worker) == [.init("a", 0)])
      try makeDirectory(scene.place + "/pending/" + planted)
      try scene.queue.sender("a").enqueue(1)
      let renames = Heard<SystemCall>()
      let plan = Faults.Plan { call, _ in
        guard [.renameat, .renameat2].contains(call) else { return .proceed }
        renames.add(call)
        return renames.all.count == 1 ? .fail(.accessDenied) : .proceed
      }
      let entry = try Faults.$plan.withValue(plan) { try worker.next(until: .now) }
      #expect(entry?.payload == 1)
      #expect(try worker.next(until: .now) == nil)
      #expect(try scene.names("pending") == [planted])
    }
  #endif
}
