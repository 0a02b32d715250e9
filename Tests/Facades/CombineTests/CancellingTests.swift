import Combine
import Foundation
import Testing
import WormholeTestSupport

@Suite("A subscription", .blocking)
struct CancellingTests {
  private let heard = Heard()
  private let subject = PassthroughSubject<Int, Never>()

  @Test("ends when it, or what it is kept in, is released")
  func released() {
    do {
      var (set, list) = (Set<AnyCancellable>(), [AnyCancellable]())
      subject.sink(into: heard, as: "a").store(in: &set)
      subject.sink(into: heard, as: "b").store(in: &list)
      subject.send(1)
      set = []
      subject.send(2)
      list.removeAll()
    }
    subject.send(3)
    #expect(heard.all == ["a1", "b1", "b2"])
  }

  @Test("releases its closures when it is cancelled, and when it ends")
  func closures() {
    weak var first: Heard?
    weak var second: Heard?
    var subscriptions: [AnyCancellable] = []
    do {
      let (a, b) = (Heard(), Heard())
      (first, second) = (a, b)
      subscriptions = [subject.sink(into: a), subject.map { $0 }.sink(into: b)]
    }
    #expect(first != nil && second != nil)
    subscriptions[0].cancel()
    #expect(first == nil && second != nil)
    subject.send(completion: .finished)
    #expect(second == nil)
    subscriptions = []
    let (asking, other) = (Asking<Int, Never>(), PassthroughSubject<Int, Never>())
    other.subscribe(asking)
    weak var subscription: AnyObject?
    subscription = asking.subscription as AnyObject?
    asking.subscription?.cancel()
    asking.forget()
    #expect(subscription == nil)
    other.send(1)
  }

  @Test("can be cancelled by its own closure, and by another's")
  func inside() {
    var subscriptions: [AnyCancellable] = []
    subscriptions.append(
      subject.sink { [heard, subject] value in
        heard.add("a\(value)")
        subject.send(9)
        for each in subscriptions { each.cancel() }
      })
    subscriptions.append(subject.sink(into: heard, as: "b"))
    subject.send(1)
    subject.send(2)
    #expect(heard.all.filter { $0.hasPrefix("a") } == ["a1"])
    #expect(!heard.all.contains("b2"))
  }

  // sender                    | canceller
  // --------------------------+----------------
  // sends 1; the closure waits|
  //                           | cancels
  //                           | lets it go on
  // sends 2                   |
  @Test("that another thread cancels gets no later value, and is not waited for")
  func elsewhere() throws {
    let (isInside, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let subscription = subject.sink { [heard] value in
      isInside.signal()
      mayGoOn.wait()
      heard.add("\(value)")
    }
    let sender = Shared(subject)
    let end = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      sender.value.send(1)
      sender.value.send(2)
      end.signal()
    }
    isInside.wait()
    subject.send(3)
    subscription.cancel()
    mayGoOn.signal()
    end.wait()
    #expect(heard.all == ["1"])
  }

  @Test("gets nothing more, even if an operator is at work in another thread")
  func inOperator() {
    let (isInside, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let end = DispatchSemaphore(value: 0)
    let subscription = subject.map { value in
      isInside.signal()
      mayGoOn.wait()
      return value
    }.sink(into: heard)
    let sender = Shared(subject)
    Thread.detachNewThread {
      sender.value.send(1)
      end.signal()
    }
    isInside.wait()
    subscription.cancel()
    mayGoOn.signal()
    end.wait()
    #expect(heard.all == [])
  }
}
