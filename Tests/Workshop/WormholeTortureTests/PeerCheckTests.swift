import Testing
import Wormhole
import WormholeTestSupport

@testable import WormholeTorture

@Suite("The checks of messages, files and requests find", .blocking)
struct PeerCheckTests {
  private func events(_ number: UInt64, _ events: Delivery.Event...) -> [Delivery] {
    events.map { Delivery(place: "q", number: number, event: $0) }
  }

  private func sending(_ number: UInt64) -> [Delivery] {
    events(number, .sending(slot: 0), .sent(id: "id-\(number)"))
  }

  private func taken(
    _ number: UInt64, _ time: UInt64, by epoch: String = "a", again: Bool = false
  ) -> [Delivery] {
    events(
      number, .taken(epoch: epoch, slot: 0, isRedelivery: again, from: time, to: time + 1))
  }

  private func handled(_ number: UInt64, _ time: UInt64, by epoch: String = "a") -> [Delivery] {
    taken(number, time, by: epoch)
      + events(number, .acknowledging, .acknowledged(at: time + 2))
  }

  private func consuming(_ epoch: String, _ time: UInt64) -> [Delivery] {
    events(0, .consuming(epoch: epoch, from: time, to: time + 1))
  }

  private func failed(_ journals: [Delivery]...) -> [String] {
    DeliveryChecks("message", journals).all().filter { !$0.holds }.map(\.promise)
  }

  private let lost = "no stored message is lost, and none arrives that was not sent"
  private let repeated = "a message is redelivered only if marked and not acknowledged"
  private let disordered = "each sender's messages arrive in order"
  private let replaced = "a consumer that was replaced gets nothing new"

  @Test("nothing in allowed journals")
  func allowed() {
    #expect(
      failed(
        sending(1) + sending(2) + sending(3) + events(4, .sending(slot: 0)),
        consuming("a", 1) + handled(1, 10) + taken(2, 20),
        consuming("b", 30) + taken(2, 40, by: "b", again: true)
          + events(2, .failing) + handled(3, 50, by: "b")) == [])
  }

  @Test("a message that was never handled, and one that was never sent")
  func losses() {
    #expect(failed(sending(1), consuming("a", 1)) == [lost])
    #expect(failed(sending(1), consuming("a", 1) + taken(1, 10)) == [lost])
    #expect(failed(consuming("a", 1) + handled(7, 10)) == [lost])
    // It may have been cancelled by a process that was killed before it knew.
    #expect(failed(sending(1) + events(1, .cancelling)) == [])
    #expect(failed(sending(1) + events(1, .cancelling, .cancelled(false))) == [lost])
  }

  @Test("one that was cancelled and delivered")
  func cancelled() {
    #expect(
      failed(
        sending(1) + events(1, .cancelling, .cancelled(true)),
        consuming("a", 1) + handled(1, 10)) == ["a cancelled message is not delivered"])
  }

  @Test("one that arrived twice unmarked, or after its acknowledgement")
  func repeats() {
    #expect(
      failed(sending(1), consuming("a", 1) + taken(1, 10) + handled(1, 20)) == [repeated])
    #expect(
      failed(sending(1), consuming("a", 1) + handled(1, 10) + taken(1, 20, again: true))
        == [repeated])
  }

  @Test("one that arrived before an earlier one of its sender")
  func order() {
    #expect(
      failed(sending(1) + sending(2), consuming("a", 1) + handled(2, 10) + handled(1, 20))
        == [disordered])
  }

  @Test("one that went to a consumer that was replaced")
  func consumers() {
    #expect(
      failed(sending(1), consuming("a", 1) + handled(1, 10), consuming("b", 5)) == [replaced])
    // It cannot be known which of them was the first.
    #expect(failed(sending(1), consuming("a", 1) + handled(1, 10), consuming("b", 2)) == [])
  }

  @Test("a sender with a wrong outcome")
  func statuses() {
    let checks = DeliveryChecks(
      "message",
      [
        sending(1) + sending(2) + events(2, .cancelling, .cancelled(true)),
        consuming("a", 1) + handled(1, 10),
      ])
    #expect(checks.statuses { _, _, id in id == "id-1" ? .processed : .cancelled }.holds)
    #expect(!checks.statuses { _, _, _ in .processed }.holds)
    #expect(!checks.statuses { _, _, _ in .cancelled }.holds)
    #expect(!checks.statuses { _, _, id in id == "id-1" ? .taken : .cancelled }.holds)
  }

  @Test("a request that ended twice or never, or with another's answer")
  func requests() {
    func holds(
      _ events: [RequestEvent], isWhole: Bool = true, isOnEtcd: Bool = false
    ) -> [Bool] {
      let entries = events.map { JournalEntry.request($0) } + (isWhole ? [.rested] : [])
      let journal = Journal(life: 1, kind: .requests, entries: entries)
      return RequestChecks(journals: [journal], isOnEtcd: isOnEtcd).all.map(\.holds)
    }
    let asking = RequestEvent.asking(number: 3)
    let answer = RequestEvent.ended(number: 3, answer: 3, how: "answered")
    #expect(holds([asking, answer]) == [true, true])
    #expect(holds([asking, answer, answer]) == [false, true])
    #expect(holds([asking]) == [false, true])
    #expect(holds([asking], isWhole: false) == [true, true])
    #expect(
      holds([asking, .ended(number: 3, answer: 4, how: "answered")]) == [true, false])
    #expect(
      holds([asking, .ended(number: 3, answer: nil, how: "inputOutput")]) == [true, false])
    let undelivered = RequestEvent.ended(number: 3, answer: nil, how: RequestChecks.undelivered)
    #expect(holds([asking, undelivered]) == [true, false])
    #expect(holds([asking, undelivered], isOnEtcd: true) == [true, true])
  }

  @Test("recorded events, and nothing in an unfinished line")
  func lines() throws {
    let deliveries =
      sending(1) + taken(2, 3, again: true) + handled(4, 5) + consuming("1-2", 6)
      + events(7, .cancelling, .cancelled(true)) + events(8, .failing)
    let requests: [RequestEvent] = [
      .asking(number: 1), .ended(number: 1, answer: nil, how: "timedOut"),
      .ended(number: 2, answer: 2, how: "answered"),
    ]
    let entries =
      deliveries.map { JournalEntry.delivery($0) } + requests.map { .request($0) } + [.rested]
    let text = try entries.map { try $0.line }.joined()
    #expect(JournalEntry.parse(text) == entries)
    for entry in entries {
      let whole = try entry.line
      for end in whole.indices {
        let parsed = JournalEntry.parse(String(whole[..<end]))
        #expect(parsed.isEmpty, "\(whole[..<end])")
      }
    }
  }

  @Test("a message that was settled only in vain, because its consumer was replaced")
  func settledInVain() {
    let vain = taken(1, 10) + events(1, .acknowledging, .unsettled)
    #expect(failed(sending(1) + consuming("a", 5) + vain) == [lost])
    let again = taken(1, 20, again: true) + events(1, .acknowledging)
    #expect(failed(sending(1) + consuming("a", 5) + vain + again) == [])
  }

  @Test("a log message that one of two subscribers never got")
  func subscribers() {
    func at(_ place: String, _ deliveries: [Delivery]) -> [Delivery] {
      deliveries.map { Delivery(place: place, number: $0.number, event: $0.event) }
    }
    let stored = ["a", "b"].flatMap { at($0, sending(1)) }
    let one = at("a", consuming("a", 1) + handled(1, 10))
    let other = at("b", consuming("b", 1) + handled(1, 20, by: "b"))
    func holds(_ journals: [Delivery]...) -> Bool {
      DeliveryChecks("log message", journals).all(isLog: true).allSatisfy(\.holds)
    }
    #expect(holds(stored, one, other))
    #expect(!holds(stored, one))
  }
}
