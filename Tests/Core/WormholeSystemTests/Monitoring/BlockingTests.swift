import Dispatch
import Testing
import Wormhole
import WormholeTestSupport

@testable import WormholeSystem

@Suite("Calls that may block", .blocking)
struct BlockingTests {
  @Test("do not wait for one another: each runs at once, however many block")
  func blockedCalls() async throws {
    let count = 128
    let begun = Heard<Int>()
    let calls = (0..<count).map { number in
      Task {
        try await Blocking.run {
          begun.add(number)
          try eventually("all have begun") { begun.all.count == count }
        }
      }
    }
    for call in calls { try await call.value }
  }

  #if DEBUG
    @Test("throw where no thread can be had, and wait for one where there are others")
    func noThread() throws {
      let none = Faults.Plan { call, _ in call == .threadCreate ? .fail(.wouldBlock) : .proceed }
      let threads = BlockingThreads()
      #expect(throws: ThreadShortage.self) {
        try Faults.$plan.withValue(none) { try threads.start {} }
      }
      let (begun, goOn, ended) = (Awaited<Void>(), Awaited<Void>(), Awaited<Void>())
      try threads.start {
        begun.settle(())
        goOn.wait()
      }
      begun.wait()
      try Faults.$plan.withValue(none) { try threads.start { ended.settle(()) } }
      #expect(!ended.isSettled)
      goOn.settle(())
      ended.wait()
    }
  #endif

  @Test("of one queue run one after another, those of waiting callers, too")
  func serial() throws {
    let queue = Blocking.queue()
    let order = Heard<Int>()
    let group = DispatchGroup()
    let (begun, goOn) = (Awaited<Void>(), Awaited<Void>())
    queue.async(group: group) {
      begun.settle(())
      goOn.wait()
      order.add(0)
    }
    begun.wait()
    for number in 1..<50 { queue.async(group: group) { order.add(number) } }
    goOn.settle(())
    queue.sync { order.add(50) }
    group.wait()
    #expect(order.all == Array(0...50))
  }
}
