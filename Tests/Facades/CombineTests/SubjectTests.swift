import Combine
import Foundation
import Synchronization
import Testing
import WormholeTestSupport

@Suite("A subject", .blocking)
struct SubjectTests {
  private let heard = Heard()
  private let subject = PassthroughSubject<Int, Fault>()

  @Test("sends to its subscribers in the order in which they came, and nothing earlier")
  func sends() {
    subject.send(1)
    let a = subject.sink(into: heard, as: "a")
    let b = subject.sink(into: heard, as: "b")
    subject.send(2)
    a.cancel()
    subject.send(3)
    #expect(heard.all == ["a2", "b2", "b3"])
    b.cancel()
  }

  @Test("with a current value sends that first, and has a new one before its subscribers do")
  func current() {
    let subject = CurrentValueSubject<Int, Never>(7)
    let subscription = subject.sink { [heard] in heard.add("\($0) \(subject.value)") }
    subject.value += 1
    subject.send(9)
    subject.send(completion: .finished)
    subject.send(10)
    #expect(heard.all == ["7 7", "8 8", "9 9"])
    #expect(subject.value == 9)
    subscription.cancel()
  }

  @Test("passes its end on once, also to those that come later, and nothing after it")
  func ends() {
    let subscription = subject.sink(into: heard, as: "a")
    subject.send(1)
    subject.send(completion: .failure(.broken))
    subject.send(completion: .finished)
    subject.send(2)
    let late = subject.sink(into: heard, as: "b")
    let current = CurrentValueSubject<Int, Fault>(7)
    current.send(completion: .finished)
    let later = current.sink(into: heard, as: "c")
    #expect(heard.all == ["a1", "afailed", "bfailed", "cfinished"])
    for each in [subscription, late, later] { each.cancel() }
  }

  @Test("delivers what a subscriber sends next, in one order for all")
  func reentrant() {
    let first = subject.sink { _ in
    } receiveValue: { [subject, heard] value in
      if value < 3 { subject.send(value + 1) }
      heard.add("a\(value)")
    }
    let second = subject.sink(into: heard, as: "b")
    subject.send(1)
    #expect(heard.all.filter { $0.hasPrefix("a") } == ["a1", "a2", "a3"])
    #expect(heard.all.filter { $0.hasPrefix("b") } == ["b1", "b2", "b3"])
    first.cancel()
    second.cancel()
  }

  @Test("loses none of 10,000 values of four threads, and its subscriber's calls do not overlap")
  func concurrent() {
    // Only the calls of the subscriber change them, one at a time.
    var (count, sum) = (0, 0)
    let subscription = subject.sink { _ in
    } receiveValue: { value in
      count += 1
      sum += value
    }
    let sender = Shared(subject)
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      for number in 0..<2_500 { sender.value.send(thread * 2_500 + number) }
    }
    #expect((count, sum) == (10_000, 9_999 * 5_000))
    subscription.cancel()
  }

  @Test("gives the last value of several threads to each subscriber last")
  func lastValue() {
    let current = CurrentValueSubject<Int, Never>(-1)
    let sender = Shared(current)
    for _ in 0..<200 {
      var last = (-1, -1)
      let subscriptions = [current.sink { last.0 = $0 }, current.sink { last.1 = $0 }]
      DispatchQueue.concurrentPerform(iterations: 4) { sender.value.send($0) }
      #expect(last == (current.value, current.value))
      for subscription in subscriptions { subscription.cancel() }
    }
  }

  @Test("drops what a subscriber has not asked for")
  func demand() {
    let asking = Asking<Int, Fault>()
    subject.subscribe(asking)
    subject.send(1)
    asking.subscription?.request(.max(2))
    for value in 2...4 { subject.send(value) }
    #expect(asking.heard.all == ["2", "3"])
    asking.subscription?.request(.max(1))
    subject.send(5)
    subject.send(completion: .finished)
    #expect(asking.heard.all == ["2", "3", "5", "end"])
    let more = Asking<Int, Never>(more: .max(1))
    let other = PassthroughSubject<Int, Never>()
    other.subscribe(more)
    more.subscription?.request(.max(1))
    for value in 1...3 { other.send(value) }
    #expect(more.heard.all == ["1", "2", "3"])
  }

  @Test("with a current value keeps the latest one until it is asked for")
  func latest() {
    let current = CurrentValueSubject<Int, Never>(1)
    let asking = Asking<Int, Never>()
    current.subscribe(asking)
    for value in 2...4 { current.send(value) }
    #expect(asking.heard.all == [])
    asking.subscription?.request(.max(1))
    #expect(asking.heard.all == ["4"])
    asking.subscription?.request(.max(1))
    current.send(5)
    current.send(6)
    #expect(asking.heard.all == ["4", "5"])
    current.send(completion: .finished)
    #expect(asking.heard.all == ["4", "5", "end"])
  }

  /// Sends when it is released.
  private final class Parting {
    let say: () -> Void

    init(_ say: @escaping () -> Void) { self.say = say }

    deinit { say() }
  }

  @Test("may be used by the deinit of a value that it replaces")
  func parting() {
    let current = CurrentValueSubject<Parting?, Never>(nil)
    let asking = Asking<Parting?, Never>()
    current.subscribe(asking)
    current.send(Parting { [heard, weak current] in heard.add("\(current?.value == nil)") })
    current.send(nil)
    asking.subscription?.cancel()
    current.send(Parting { [heard, weak current] in heard.add("\(current?.value == nil)") })
    current.send(nil)
    #expect(heard.all == ["true", "true"])
  }
}
