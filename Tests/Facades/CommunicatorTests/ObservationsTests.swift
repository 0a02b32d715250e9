import Dispatch
import Synchronization
import Testing
import WormholeTestSupport

@testable import Communicator

@Suite("Observations", .blocking)
struct ObservationsTests {
  /// The values of one observer.
  private final class Log<Value: Sendable>: Sendable {
    private let entries = Mutex<[Value]>([])
    func append(_ value: Value) { entries.withLock { $0.append(value) } }
    var values: [Value] { entries.withLock { $0 } }
  }

  /// What is called when the first observers have registered.
  private final class Steps: Sendable {
    private let steps = Mutex<[@Sendable () -> Void]>([])

    func add(_ step: @escaping @Sendable () -> Void) { steps.withLock { $0.append(step) } }

    func run() {
      let all = steps.withLock { $0 }
      for step in all { step() }
    }
  }

  private let queue = DispatchQueue(label: "observers")

  /// Returns when all earlier values have been delivered.
  private func drain() { queue.sync {} }

  @Test("deliver every value to every observer, in order")
  func everybody() {
    let observations = Observations<Int>()
    let logs = (0..<3).map { _ in Log<Int>() }
    for log in logs { _ = observations.add(on: queue) { log.append($0) } }
    for value in 0..<100 { observations.notify(value) }
    drain()
    for log in logs { #expect(log.values == Array(0..<100)) }
  }

  @Test("call observers in the order of registration")
  func order() {
    let observations = Observations<Int>()
    let log = Log<String>()
    for name in ["a", "b", "c", "d", "e"] {
      _ = observations.add(on: queue) { log.append("\(name)\($0)") }
    }
    observations.notify(1)
    drain()
    #expect(log.values == ["a1", "b1", "c1", "d1", "e1"])
  }

  @Test("deliver nothing after their end, not even values on their way")
  func unobserved() {
    let observations = Observations<Int>()
    let log = Log<Int>()
    let observation = observations.add(on: queue) { log.append($0) }
    observations.notify(1)
    drain()
    queue.suspend()
    observations.notify(2)
    observations.remove(observation)
    queue.resume()
    observations.notify(3)
    observations.remove(observation)
    drain()
    #expect(log.values == [1])
  }

  @Test("release the handler's captures at their end")
  func released() {
    final class Owner: Sendable {}
    let observations = Observations<Int>()
    var owner: Owner? = Owner()
    weak let watched = owner
    let observation = observations.add(on: queue) { [owner] _ in _ = owner }
    owner = nil
    observations.notify(1)
    drain()
    #expect(watched != nil)
    observations.remove(observation)
    #expect(watched == nil)
  }

  @Test("may be ended and begun by a handler")
  func reentrant() {
    let observations = Observations<Int>()
    let log = Log<Int>()
    let own = Mutex<Observation?>(nil)
    let observation = observations.add(on: queue) { [queue] value in
      log.append(value)
      own.withLock { $0 }.map(observations.remove)
      _ = observations.add(on: queue) { log.append($0 * 10) }
    }
    own.withLock { $0 = observation }
    queue.suspend()
    observations.notify(1)
    observations.notify(2)
    queue.resume()
    drain()
    observations.notify(3)
    drain()
    #expect(log.values == [1, 30])
  }

  /// The second observer of an app used to miss them.
  @Test("keep values, up to a limit, for all first observers, and what follows comes after them")
  func waiting() {
    let steps = Steps()
    let observations = Observations<Int>(keeping: 3) { steps.add($0) }
    for value in 1...5 { observations.notify(value) }
    let logs = (0..<3).map { _ in Log<Int>() }
    for log in logs.prefix(2) { _ = observations.add(on: queue) { log.append($0) } }
    observations.notify(6)
    steps.run()
    drain()
    for log in logs.prefix(2) { #expect(log.values == [3, 4, 5, 6]) }
    _ = observations.add(on: queue) { logs[2].append($0) }
    observations.notify(7)
    drain()
    #expect(logs.map(\.values) == [[3, 4, 5, 6, 7], [3, 4, 5, 6, 7], [7]])
  }

  @Test("keep values for others when the first observer ends before it got them")
  func endedEarly() {
    let steps = Steps()
    let observations = Observations<Int>(keeping: 3) { steps.add($0) }
    observations.notify(1)
    let early = Log<Int>()
    observations.remove(observations.add(on: queue) { early.append($0) })
    steps.run()
    let log = Log<Int>()
    _ = observations.add(on: queue) { log.append($0) }
    steps.run()
    drain()
    #expect(log.values == [1])
    #expect(early.values.isEmpty)
  }

  @Test("keep nothing once there was an observer, and no values of immediate types")
  func notWaiting() throws {
    let kept = Observations<Int>(keeping: 3)
    let first = Log<Int>()
    kept.notify(0)
    let observation = kept.add(on: queue) { first.append($0) }
    try eventually("it is handed over") { first.values == [0] }
    kept.remove(observation)
    kept.notify(1)
    let passing = Observations<Int>()
    passing.notify(2)
    let log = Log<Int>()
    _ = kept.add(on: queue) { log.append($0) }
    _ = passing.add(on: queue) { log.append($0) }
    drain()
    #expect(log.values.isEmpty)
  }

  // The original kept observers in a dictionary without a lock, and crashed when two threads met.
  @Test("survive threads that observe, end and notify at once, and no observer misses a value")
  func threads() {
    let observations = Observations<Int>()
    let steady = Log<Int>()
    let passing = Log<Int>()
    _ = observations.add(on: queue) { steady.append($0) }
    DispatchQueue.concurrentPerform(iterations: 8) { [queue] thread in
      for step in 0..<200 {
        let observation = observations.add(on: queue) { passing.append($0) }
        observations.notify(thread * 1_000 + step)
        observations.remove(observation)
      }
    }
    drain()
    #expect(steady.values.count == 1_600)
    // The values of each thread are in the order of sending.
    let threads = Dictionary(grouping: steady.values) { $0 / 1_000 }
    for (_, values) in threads { #expect(values == values.sorted()) }
    let before = passing.values.count
    observations.notify(0)
    drain()
    #expect(passing.values.count == before)
  }
}
