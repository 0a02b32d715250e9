import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("The steps of a consumer", .blocking)
struct ConsumerStepsTests {
  /// Finds `rest` damaged files, and then nothing.
  private struct Fruitless: ConsumerSource {
    var rest: Int
    let looks: Heard<Int>

    mutating func take(until deadline: ContinuousClock.Instant?) throws -> TakeResult {
      looks.add(1)
      rest -= 1
      return rest < 0 ? .nothing(until: nil) : .again
    }
  }

  private struct Nowhere: ConsumerMembership {
    func isIdle(countsTaken: Bool) throws -> Bool { true }
    func watch(_ signal: @escaping @Sendable () -> Void) -> [any Cancelling] { [] }
    func noteLoss() throws {}
    func end(_ registration: PresenceRegistration?, _ cause: ConsumerEnd) {}
  }

  /// How often a source was asked that finds something, and no entry, so often; its time is over.
  private func looks(finding count: Int) throws -> Int {
    let directory = try TemporaryDirectory()
    let looks = Heard<Int>()
    let queue = try directory.container().queue("q")
    let epoch = ConsumerEpoch(
      (source: Fruitless(rest: count, looks: looks), place: Nowhere(), registration: nil),
      DeliveryTerms(OpenQueue(queue)))
    #expect(try epoch.take(until: .now, .now).delivery == nil)
    return looks.all.count
  }

  @Test("end at the limit of the call that looks, also with its second look")
  func limit() throws {
    #expect(try looks(finding: .max) == 2 * (ConsumerSteps.leastSteps + 1))
  }

  // A call without time once returned nothing although an entry waited, because the machine was busy.
  @Test("go past some files without an entry, however slow they are")
  func slow() throws {
    // The last look finds nothing more, and so does the second one.
    #expect(try looks(finding: ConsumerSteps.leastSteps) == ConsumerSteps.leastSteps + 2)
  }

  /// A source that delivers only damaged files, without an end.
  private struct Endless: ConsumerSource {
    let looks: Heard<Int>

    mutating func take(until deadline: ContinuousClock.Instant?) throws -> TakeResult {
      looks.add(1)
      pauseThread(.milliseconds(1))
      return .again
    }
  }

  private func endless(_ looks: Heard<Int> = Heard()) throws -> QueueConsumer<Int> {
    let queue = try TemporaryDirectory().container().queue("q", of: Int.self)
    let (terms, wake) = (ConsumerTerms(), WakeLatch())
    let epoch = ConsumerEpoch(
      (source: Endless(looks: looks), place: Nowhere(), registration: nil),
      DeliveryTerms(OpenQueue(queue.plain), terms, wake))
    return QueueConsumer(queue, terms, wake: wake, epoch: epoch)
  }

  // 'take --drain' then ended, and '--timeout 0' said that the queue was empty.
  @Test("say that they have not looked at everything when a call without time ends")
  func spent() throws {
    let consumer = try endless()
    #expect(try consumer.next(until: .now) == nil && consumer.isSpent)
  }

  @Test("end when the task of a call without a deadline is cancelled, whatever there is to pass")
  func cancelled() async throws {
    let looks = Heard<Int>()
    let consumer = try endless(looks)
    for isUnderWay in [false, true] {
      let before = looks.all.count
      let call = Task { try await consumer.next() }
      // A cancellation once counted only before the first look, or after a wait.
      if isUnderWay { try eventually("it looks") { looks.all.count > before } }
      call.cancel()
      await #expect(throws: CancellationError.self) { try await call.value }
    }
  }
}
