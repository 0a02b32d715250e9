import Dispatch
import Testing
import Wormhole
import WormholeTestSupport

@testable import WormholeSystem

@Suite("A wake latch", .blocking)
struct WakeLatchTests {
  @Test("keeps one raise for the next waiter, and wakes a present waiter")
  func remembers() async throws {
    let latch = WakeLatch()
    latch.raise()
    latch.raise()
    latch.block(until: .now + .seconds(60))
    let far = ContinuousClock.now + .seconds(600)
    let waiting = Task { await latch.suspend(until: far) }
    await Task.yield()
    latch.raise()
    await waiting.value
    #expect(ContinuousClock.now < far)
    latch.block(until: .now)
  }

  @Test("drops a raise that has woken a waiter, and wakes at the deadline")
  func forgets() async throws {
    let latch = WakeLatch()
    for _ in 0..<2 {
      latch.raise()
      latch.block(until: .now + .seconds(600))
      let deadline = ContinuousClock.now + .milliseconds(20)
      latch.block(until: deadline)
      #expect(ContinuousClock.now >= deadline - .milliseconds(5), "it was not raised again")
    }
    let late = Heard<Duration>()
    let waiting = Task {
      latch.raise()
      await latch.suspend(until: nil)
      let deadline = ContinuousClock.now + .milliseconds(50)
      await latch.suspend(until: deadline)
      late.add(deadline.duration(to: .now))
    }
    try await eventuallyAsync("its deadline wakes it") { !late.all.isEmpty }
    #expect(late.all[0] >= .milliseconds(-5))
    await waiting.value
  }

  // The second one ended the process.
  @Test("wakes all tasks that wait, and each again if a raise came for only one")
  func severalTasks() async throws {
    let latch = WakeLatch()
    let woken = Heard<Int>()
    let far = ContinuousClock.now + .seconds(600)
    for number in 0..<3 {
      #expect(latch.wake(until: far) { woken.add(number) })
    }
    latch.raise()
    #expect(woken.all.sorted() == [0, 1, 2])
    // Shared by now: it looks again, although nothing raises it.
    #expect(latch.wake(until: far) { woken.add(3) })
    try await eventuallyAsync("it looks again") { woken.all.count == 4 }
    latch.block(until: far)
    #expect(ContinuousClock.now < far)
  }

  @Test("wakes all threads that are blocked")
  func several() throws {
    let latch = WakeLatch()
    let began = DispatchSemaphore(value: 0)
    let woken = Heard<Int>()
    for number in 0..<4 {
      try startThread(name: "waiter") {
        began.signal()
        latch.block(until: .now + .seconds(600))
        woken.add(number)
      }
    }
    for _ in 0..<4 { began.wait() }
    try eventually("all are woken") {
      latch.raise()
      return woken.all.count == 4
    }
  }

  @Test("wakes a blocked thread from another one, in any interleaving")
  func threads() throws {
    for _ in 0..<200 {
      let latch = WakeLatch()
      let done = DispatchSemaphore(value: 0)
      try startThread(name: "raiser") {
        latch.raise()
        done.signal()
      }
      latch.block(until: .now + .seconds(600))
      done.wait()
    }
  }
}
