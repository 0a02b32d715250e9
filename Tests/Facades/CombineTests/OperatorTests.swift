import Combine
import Testing
import WormholeTestSupport

@Suite("An operator", .blocking)
struct OperatorTests {
  private let heard = Heard()
  private let subject = PassthroughSubject<Int, Fault>()
  private let other = PassthroughSubject<Int, Fault>()

  private func send(_ values: [Int]) { for value in values { subject.send(value) } }

  @Test("map publishes what a closure or a key path makes of each value, and passes the end on")
  func map() {
    let subscriptions = [
      subject.map { $0 * 2 }.sink(into: heard),
      subject.map(\.description.count).sink(into: heard, as: "count "),
    ]
    send([1, 10])
    subject.send(completion: .failure(.broken))
    #expect(heard.all == ["2", "count 1", "20", "count 2", "failed", "count failed"])
    _ = subscriptions
  }

  @Test("compactMap leaves out what becomes nil")
  func compactMap() {
    let texts = PassthroughSubject<String, Never>()
    let subscription = texts.compactMap { Int($0) }.sink(into: heard)
    for text in ["1", "x", "2"] { texts.send(text) }
    texts.send(completion: .finished)
    #expect(heard.all == ["1", "2", "finished"])
    subscription.cancel()
  }

  @Test(
    "filter, dropFirst and removeDuplicates leave values out, and keep a state for each subscriber")
  func selecting() {
    let even = subject.filter { $0.isMultiple(of: 2) }
    let rest = subject.dropFirst(2)
    let (changes, tens) = (
      subject.removeDuplicates(), subject.removeDuplicates { $0 / 10 == $1 / 10 }
    )
    var subscriptions = [
      even.sink(into: heard, as: "even "), rest.sink(into: heard, as: "rest "),
      changes.sink(into: heard, as: "change "), tens.sink(into: heard, as: "ten "),
    ]
    send([1, 1, 2])
    #expect(heard.all == ["change 1", "ten 1", "even 2", "rest 2", "change 2"])
    subscriptions.append(rest.sink(into: heard, as: "late "))
    send([2, 13])
    #expect(
      heard.all.suffix(5) == ["even 2", "rest 2", "rest 13", "change 13", "ten 13"])
    subject.send(3)
    #expect(heard.all.last == "late 3")
    _ = subscriptions
  }

  @Test("asks for one more value for each that it leaves out")
  func demand() {
    let asking = Asking<Int, Fault>()
    subject.dropFirst().filter { $0 > 1 }.subscribe(asking)
    asking.subscription?.request(.max(2))
    send([1, 1, 2, 1, 3, 4])
    #expect(asking.heard.all == ["2", "3"])
    asking.subscription?.cancel()
    send([5])
    #expect(asking.heard.all == ["2", "3"])
  }

  @Test("merge publishes the values of all, finishes when all have")
  func merge() {
    let third = CurrentValueSubject<Int, Fault>(3)
    let subscription = subject.merge(with: other, third).sink(into: heard)
    subject.send(1)
    other.send(2)
    subject.send(completion: .finished)
    third.send(completion: .finished)
    other.send(4)
    #expect(heard.all == ["3", "1", "2", "4"])
    other.send(completion: .finished)
    #expect(heard.all.last == "finished")
    subscription.cancel()
  }

  @Test("merge keeps what is not asked for yet")
  func mergeDemand() {
    let asking = Asking<Int, Fault>()
    subject.merge(with: other).subscribe(asking)
    subject.send(1)
    other.send(2)
    subject.send(completion: .finished)
    other.send(completion: .finished)
    asking.subscription?.request(.max(1))
    #expect(asking.heard.all == ["1"])
    asking.subscription?.request(.unlimited)
    #expect(asking.heard.all == ["1", "2", "end"])
    let cancelling = Asking<Int, Never>(last: "3")
    CurrentValueSubject(3).merge(with: CurrentValueSubject(4)).subscribe(cancelling)
    cancelling.subscription?.request(.unlimited)
    #expect(cancelling.heard.all == ["3"])
  }

  @Test("merge and combineLatest fail when one does, and end the others")
  func failing() {
    let subscriptions = [
      subject.merge(with: other).sink(into: heard, as: "merged "),
      subject.combineLatest(other).sink(into: heard, as: "latest "),
    ]
    subject.send(1)
    other.send(completion: .failure(.broken))
    subject.send(2)
    #expect(heard.all == ["merged 1", "merged failed", "latest failed"])
    _ = subscriptions
  }

  @Test("combineLatest publishes the latest values, as soon as there are all, and their changes")
  func combineLatest() {
    let subscriptions = [
      subject.combineLatest(other).sink(into: heard),
      subject.combineLatest(other) { $0 + $1 }.sink(into: heard, as: "sum "),
    ]
    subject.send(1)
    subject.send(2)
    other.send(10)
    subject.send(completion: .finished)
    other.send(20)
    other.send(completion: .finished)
    #expect(
      heard.all == [
        "(2, 10)", "sum 12", "(2, 20)", "sum 22", "finished", "sum finished",
      ])
    _ = subscriptions
    let values = CurrentValueSubject<Int?, Never>(nil)
    let pair = values.combineLatest(CurrentValueSubject<Int?, Never>(1)) { ($0, $1) }
      .sink { [heard] in heard.add("\($0.0 ?? 0) \($0.1 ?? 0)") }
    values.send(3)
    #expect(heard.all.suffix(2) == ["0 1", "3 1"])
    pair.cancel()
  }

  @Test("eraseToAnyPublisher, and a chain of all of them, end with one cancellation")
  func chain() {
    let publisher: AnyPublisher<Int, Fault> = subject.map { $0 }.merge(with: other)
      .combineLatest(subject) { $0 + $1 }.removeDuplicates().eraseToAnyPublisher()
    let subscription = AnyPublisher(publisher).sink(into: heard)
    subject.send(1)
    other.send(2)
    #expect(heard.all == ["2", "3"])
    subscription.cancel()
    other.send(3)
    #expect(heard.all == ["2", "3"])
  }
}
