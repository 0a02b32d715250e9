import Testing
import Wormhole
import WormholeTestSupport

@testable import WormholeSystem

@Suite("Calls that may block", .blocking)
struct BlockingTests {
  @Test("do not wait for one another: libdispatch runs each at once, however many block")
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
}
