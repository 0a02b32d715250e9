import Testing
import WatchConnectivity
import WormholeTestSupport

@testable import Communicator

// The original repeated the activation at once and for ever.
@Suite("ActivationRetry", .blocking)
struct ActivationRetryTests {
  @Test("waits twice as long each time, a minute at most")
  func doubles() {
    var retry = ActivationRetry()
    let pauses = (0..<12).map { _ in retry.pause(after: WCError(.genericError)) }
    #expect(pauses[0] == .milliseconds(100))
    #expect(pauses[1] == .milliseconds(200))
    #expect(pauses[9] == .milliseconds(51_200))
    #expect(pauses[10] == .seconds(60))
    #expect(pauses[11] == .seconds(60))
  }

  @Test("starts from the beginning after a success")
  func success() {
    var retry = ActivationRetry()
    _ = retry.pause(after: nil)
    _ = retry.pause(after: nil)
    retry.succeeded()
    #expect(retry.pause(after: nil) == .milliseconds(100))
  }

  @Test(
    "never repeats an activation that cannot succeed",
    arguments: [WCError.Code.sessionNotSupported, .sessionMissingDelegate])
  func permanent(code: WCError.Code) {
    var retry = ActivationRetry()
    #expect(retry.pause(after: WCError(code)) == nil)
  }
}
