import Combine
import Dispatch
import Foundation
import Synchronization
import Testing
import WormholeTestSupport

/// A clock that a test moves.
private final class ManualScheduler: Scheduler, Sendable {
  private struct State {
    var now = Duration.zero
    var waiting: [(due: Duration, action: @Sendable () -> Void)] = []
  }

  private let state = Mutex(State())

  func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.waiting.append(($0.now + delay, action)) }
  }

  func advance(by time: Duration) {
    let due = state.withLock { state in
      state.now += time
      defer { state.waiting.removeAll { $0.due <= state.now } }
      return state.waiting.filter { $0.due <= state.now }
    }
    for each in due { each.action() }
  }
}

@Suite("A scheduler", .blocking)
struct SchedulingTests {
  private let heard = Heard()
  private let subject = PassthroughSubject<Int, Fault>()

  @Test("of a queue receives the values and the end, in their order")
  func queue() throws {
    let queue = DispatchQueue(label: "receiving")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let subscription = subject.receive(on: queue).sink { [heard] _ in
      heard.add("end \(DispatchQueue.getSpecific(key: key) ?? false)")
    } receiveValue: { [heard] in
      heard.add("\($0) \(DispatchQueue.getSpecific(key: key) ?? false)")
    }
    for value in 1...3 { subject.send(value) }
    subject.send(completion: .finished)
    try eventually("the end comes") { heard.all.count == 4 }
    #expect(heard.all == ["1 true", "2 true", "3 true", "end true"])
    subscription.cancel()
  }

  @Test("of the main loop delivers in a program that runs only the main queue")
  func mainLoop() throws {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    let subject = PassthroughSubject<Int, Never>()
    let subscriptions = [
      subject.receive(on: RunLoop.main),
      subject.debounce(for: .milliseconds(1), scheduler: RunLoop.main),
    ].map { publisher in
      publisher.sink { [heard] in heard.add("\($0) \(DispatchQueue.getSpecific(key: key) == true)")
      }
    }
    subject.send(1)
    try eventually("both come") { heard.all.count == 2 }
    #expect(heard.all == ["1 true", "1 true"])
    _ = subscriptions
  }

  @Test("of an operation queue adds the operation at once")
  func operations() {
    let queue = OperationQueue()
    for value in 0..<50 {
      let subject = PassthroughSubject<Int, Never>()
      let subscription = subject.receive(on: queue).sink { [heard] in heard.add("\($0)") }
      subject.send(value)
      queue.waitUntilAllOperationsAreFinished()
      #expect(heard.all.last == "\(value)")
      subscription.cancel()
    }
  }

  @Test("of a concurrent queue keeps the order of 10,000 values")
  func concurrentQueue() throws {
    let subscription = subject.receive(on: DispatchQueue.global()).sink(into: heard)
    for value in 0..<10_000 { subject.send(value) }
    subject.send(completion: .finished)
    try eventually("the end comes") { heard.all.last == "finished" }
    #expect(heard.all.dropLast() == (0..<10_000).map(String.init)[...])
    subscription.cancel()
  }

  @Test("of an operation queue and of a run loop that waits receives, too")
  func others() throws {
    let operations = OperationQueue()
    operations.maxConcurrentOperationCount = 1
    let first = subject.receive(on: operations).sink { _ in
    } receiveValue: { [heard] _ in
      heard.add("\(OperationQueue.current === operations)")
    }
    let loop = Mutex<Shared<RunLoop>?>(nil)
    let isOver = Mutex(false)
    Thread.detachNewThread {
      let own = RunLoop.current
      // A loop without anything to wait for would return.
      own.add(Timer(timeInterval: 3_600, repeats: false) { _ in }, forMode: .default)
      loop.withLock { $0 = Shared(own) }
      while !isOver.withLock({ $0 }) { _ = own.run(mode: .default, before: .distantFuture) }
    }
    try eventually("the loop runs") { loop.withLock { $0 != nil } }
    let runLoop = try #require(loop.withLock { $0 }).value
    let second = subject.receive(on: runLoop).sink { _ in
    } receiveValue: { [heard] _ in
      heard.add("\(Thread.isMainThread) in the loop")
    }
    subject.send(1)
    try eventually("both come") { heard.all.count == 2 }
    #expect(heard.all.sorted() == ["false in the loop", "true"])
    let end = subject.debounce(for: 0.001, scheduler: runLoop).sink { _ in
    } receiveValue: { _ in
      isOver.withLock { $0 = true }
    }
    subject.send(2)
    try eventually("the debounced value comes") { isOver.withLock { $0 } }
    for each in [first, second, end] { each.cancel() }
  }

  @Test("delivers nothing that waited when the subscription was cancelled")
  func cancelled() throws {
    let queue = DispatchQueue(label: "receiving")
    let subscription = subject.receive(on: queue).sink(into: heard)
    queue.suspend()
    subject.send(1)
    subscription.cancel()
    queue.resume()
    queue.sync {}
    #expect(heard.all == [])
  }

  @Test("delays by debounce a value until none has followed it for the time")
  func debounce() {
    let clock = ManualScheduler()
    let subscription = subject.debounce(for: .milliseconds(300), scheduler: clock)
      .sink(into: heard)
    subject.send(1)
    clock.advance(by: .milliseconds(200))
    subject.send(2)
    clock.advance(by: .milliseconds(299))
    #expect(heard.all == [])
    clock.advance(by: .milliseconds(1))
    #expect(heard.all == ["2"])
    clock.advance(by: .seconds(1))
    subject.send(3)
    clock.advance(by: .seconds(0.3))
    #expect(heard.all == ["2", "3"])
    subject.send(4)
    subject.send(completion: .finished)
    clock.advance(by: .seconds(1))
    #expect(heard.all == ["2", "3", "finished"])
    subscription.cancel()
  }

  @Test("of debounce calls nothing that was cancelled meanwhile")
  func debounceCancelled() {
    let clock = ManualScheduler()
    let subscription = subject.debounce(for: 0.3, scheduler: clock).sink(into: heard)
    subject.send(1)
    subscription.cancel()
    clock.advance(by: .seconds(1))
    #expect(heard.all == [])
  }

  @Test("waits the time of debounce on a queue")
  func debounceOnQueue() throws {
    let queue = DispatchQueue(label: "debouncing")
    let start = ContinuousClock.now
    let subscription = subject.debounce(for: .milliseconds(20), scheduler: queue)
      .sink(into: heard)
    subject.send(1)
    subject.send(2)
    try eventually("the value comes") { !heard.all.isEmpty }
    #expect(heard.all == ["2"] && ContinuousClock.now - start >= .milliseconds(20))
    subscription.cancel()
  }
}
