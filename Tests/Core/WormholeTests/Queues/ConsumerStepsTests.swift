import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("The steps of a consumer", .blocking)
struct ConsumerStepsTests {
  /// Always finds something, and never an entry: as many damaged files.
  private struct Endless: ConsumerSource {
    let place: any ConsumerPlace
    var due: ContinuousClock.Instant? { nil }
    let looks: Heard<Int>

    mutating func take(until deadline: ContinuousClock.Instant?) throws -> Taking {
      looks.add(1)
      return .again
    }
  }

  private struct Nowhere: ConsumerPlace {
    func isIdle(countsTaken: Bool) throws -> Bool { true }
    func watch(_ signal: @escaping @Sendable () -> Void) -> [any Cancelling] { [] }
    func noteLoss() throws {}
    func end(_ registration: PresenceRegistration?, asDeath: Bool) {}
    func endLater(_ registration: PresenceRegistration?) {}
  }

  @Test("end at the limit of the call that looks, also with its second look")
  func limit() throws {
    let directory = try TemporaryDirectory()
    let looks = Heard<Int>()
    let queue = try directory.container().queue("q")
    let tenure = ConsumerTenure(
      (source: Endless(place: Nowhere(), looks: looks), registration: nil),
      DeliveryTerms(OpenQueue(queue)))
    #expect(try tenure.take(until: .now, .now) == nil)
    #expect(looks.all.count == 2)
  }
}
