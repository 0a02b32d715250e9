import Dispatch
import Testing
import WormholeTestSupport

@testable import WormholeSystem

@Suite("Timers", .blocking)
struct TimersTests {
  @Test("are called once each, in the order of their moments, and none early")
  func order() throws {
    let seed = TestSeed.next("TIMERS_SEED")
    var random = seed.generator
    let timers = Timers()
    let (began, allAdded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let (all, early) = (Heard<ContinuousClock.Instant>(), Heard<Duration>())
    timers.call(at: .now) {
      began.signal()
      allAdded.wait()
    }
    // From now on the thread calls none of the others before all are there.
    began.wait()
    let moments = (0..<500).map { _ in
      ContinuousClock.now + .microseconds(Int.random(in: -10_000...30_000, using: &random))
    }
    for moment in moments {
      timers.call(at: moment) {
        all.add(moment)
        if moment > .now { early.add(moment - .now) }
      }
    }
    allAdded.signal()
    try eventually("all are called, \(seed)") { all.all.count == moments.count }
    #expect(all.all == moments.sorted() && early.all.isEmpty, "\(seed)")
  }

  @Test("need no descriptor, although they are the first of a process")
  func descriptors() throws {
    let directory = try TemporaryDirectory()
    let process = try Participant(directory.path)
    #expect(try process.ask("mailbox-descriptors 0") == "done")
    #expect(try process.ask("wait 20") == "done")
  }
}
