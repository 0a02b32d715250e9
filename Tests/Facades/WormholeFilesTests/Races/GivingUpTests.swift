import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// Accesses that are given up while they wait, or after they got their items.
@Suite("An access that is given up", .blocking)
struct GivingUpTests {
  let scene: RaceScene
  let holder: Participant

  init() throws {
    scene = try RaceScene()
    try scene.put("old", "a")
    try scene.put("old", "b")
    holder = try scene.participant()
  }

  /// Waits until this process waits for the holder of an item.
  private func waitUntilWaiting(_ name: String) throws {
    let lease = ItemSite.path(of: ItemPath(scene.path(name))) + "/held"
    try eventually("this process waits for \(name)") {
      try RaceScene.open(by: Program.processID).contains(lease)
    }
  }

  // holder                     this process
  // inside b
  //                            has a, waits for b
  //                            cancel(): cancelled, a is free
  // leaves
  @Test("by cancel() fails, its accessor is not run, and its other items are free")
  func cancelled() async throws {
    #expect(try holder.ask("writing \(scene.path("b")) term=600").hasPrefix("inside "))
    let coordinator = FileCoordinator()
    let urls = (scene.url("a"), scene.url("b"))
    let waiting = Task {
      try await coordinator.coordinate(
        writingItemAt: urls.0, writingItemAt: urls.1, until: .now + .seconds(600)
      ) { _, _ in Issue.record("access was granted") }
    }
    try waitUntilWaiting("b")
    coordinator.cancel()
    let error = await #expect(throws: WormholeError.self) { try await waiting.value }
    #expect(error?.code == .cancelled)
    try await coordinator.coordinate(writingItemAt: urls.0, until: .now) {
      try ItemText.write("new", to: $0.path)
    }
    #expect(try holder.ask("leave") == "done")
    #expect(try scene.text("a") == "new")
    try scene.expectOnly(["a", "b"])
  }

  #if DEBUG
    @Test("by cancel() at any of its calls runs no accessor after that")
    func cancelledAnywhere() throws {
      for number in 0..<200 {
        let coordinator = FileCoordinator()
        let isCancelled = Mutex(false)
        let hasRun = Mutex(false)
        let cancelling = Faults.Plan.acting(before: number) {
          guard !hasRun.withLock(\.self) else { return }
          coordinator.cancel()
          isCancelled.withLock { $0 = true }
        }
        do {
          try Faults.$plan.withValue(cancelling) {
            try coordinator.coordinate(writingItemAt: scene.url("a")) { _ in
              let isTooLate = isCancelled.withLock { $0 }
              #expect(!isTooLate, "before call \(number)")
              hasRun.withLock { $0 = true }
            }
          }
        } catch let error as WormholeError {
          #expect(error.code == .cancelled, "before call \(number): \(error)")
        }
        if !isCancelled.withLock(\.self) { return }
      }
      Issue.record("it never ends")
    }
  #endif

  @Test("by cancelling its task fails, and its other items are free, without entries")
  func cancelledTask() async throws {
    #expect(try holder.ask("writing \(scene.path("b")) term=600").hasPrefix("inside "))
    let urls = (scene.url("a"), scene.url("b"))
    let waiting = Task {
      try await FileCoordinator().coordinate(
        writingItemAt: urls.0, writingItemAt: urls.1, until: .now + .seconds(600)
      ) { _, _ in Issue.record("access was granted") }
    }
    try waitUntilWaiting("b")
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    // The thread that made its last step may be the last to release it.
    try eventually("a is free") { try scene.entries("a").isEmpty }
    #expect(try holder.ask("leave") == "done")
    try scene.expectOnly(["a", "b"])
  }

  // reader                     this process
  // inside
  //                            wrote, waits for the reader to publish
  //                            its task is cancelled
  @Test(
    "by cancelling its task while it waits to publish leaves the item as it was, and nothing else")
  func cancelledPublication() async throws {
    #expect(try holder.ask("reading \(scene.path("a"))").hasPrefix("inside "))
    let url = scene.url("a")
    let writing = Task {
      try await FileCoordinator().coordinate(writingItemAt: url) {
        try ItemText.write("new", to: $0.path)
      }
    }
    try scene.waitUntilPublishing("a")
    writing.cancel()
    await #expect(throws: CancellationError.self) { try await writing.value }
    // The thread that made its last step may be the last to release it.
    try eventually("a is free") { try scene.entries("a").isEmpty }
    #expect(try holder.ask("leave") == "done")
    #expect(try scene.text("a") == "old")
    try scene.expectOnly(["a", "b"])
  }

  @Test("by its accessor, and by a deadline, leaves nothing, however many items it named")
  func thrown() throws {
    let a = scene.path("a")
    let b = scene.path("b")
    #expect(try holder.ask("writing \(a) deleting \(b) uploading \(a)").hasPrefix("inside "))
    #expect(try holder.ask("throw") == "thrown")
    try scene.expectOnly(["a", "b"])
    #expect(try holder.ask("writing \(b)").hasPrefix("inside "))
    let other = try scene.participant()
    let answer = try other.ask("uploading \(a) writing \(b) wait=0.1 put=new")
    #expect(answer.hasPrefix("error timedOut "), "\(answer)")
    #expect(try holder.ask("leave") == "done")
    #expect(try scene.text("a") == "old")
    try scene.expectOnly(["a", "b"])
  }

  @Test(
    "not at all publishes a copy that was read and written in one access, and removes both copies"
  )
  func snapshotOfWhatIsWritten() throws {
    let a = scene.path("a")
    #expect(try holder.ask("uploading \(a) writing \(a)").hasPrefix("inside "))
    #expect(try holder.ask("put new") == "done")
    #expect(try holder.ask("leave") == "done")
    #expect(try scene.text("a") == "new")
    try scene.expectOnly(["a", "b"])
  }
}
