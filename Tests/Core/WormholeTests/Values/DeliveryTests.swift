import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

@Suite("A delivery", .blocking)
struct DeliveryTests {
  private let queue = DispatchQueue(label: "test")

  /// Creates a delivery of the number of its looks.
  private func counting(
    on queue: DispatchQueue, _ call: @escaping @Sendable (Int) -> Void
  ) -> ChangeDelivery<Int> {
    ChangeDelivery(initial: 0, on: queue) { last in (last + 1, { call(last + 1) }) }
  }

  @Test("answers a signal that came before it was opened")
  func early() throws {
    let heard = Heard<Int>()
    let delivery = counting(on: queue) { heard.add($0) }
    delivery.signal()
    queue.sync {}
    #expect(heard.all == [])
    delivery.open()
    try eventually("it is answered") { heard.all == [1] }
  }

  @Test("looks again for a signal that comes while it looks or calls")
  func signalledMeanwhile() throws {
    let heard = Heard<Int>()
    let box = Mutex<ChangeDelivery<Int>?>(nil)
    let delivery = ChangeDelivery<Int>(initial: 0, on: queue) { last in
      if last == 0 { box.withLock { $0 }?.signal() }
      return (
        last + 1,
        {
          heard.add(last + 1)
          if last == 1 { box.withLock { $0 }?.signal() }
        }
      )
    }
    box.withLock { $0 = delivery }
    delivery.open(signalled: true)
    try eventually("each was answered") { heard.all == [1, 2, 3] }
    box.withLock { $0 = nil }
  }

  @Test("makes no call after it was cancelled, before its turn or during its look")
  func cancelled() throws {
    let heard = Heard<Int>()
    let first = counting(on: queue) { heard.add($0) }
    first.open()
    queue.suspend()
    first.signal()
    first.cancel()
    queue.resume()
    let box = Mutex<ChangeDelivery<Int>?>(nil)
    let hasLooked = DispatchSemaphore(value: 0)
    let second = ChangeDelivery<Int>(initial: 0, on: queue) { last in
      box.withLock { $0 }?.cancel()
      hasLooked.signal()
      return (last + 1, { heard.add(last + 1) })
    }
    box.withLock { $0 = second }
    second.open(signalled: true)
    hasLooked.wait()
    // A third one on the same queue is called after any call of the others.
    let third = counting(on: queue) { _ in heard.add(3) }
    third.open(signalled: true)
    try eventually("the third is called") { heard.all.contains(3) }
    #expect(heard.all == [3])
    box.withLock { $0 = nil }
  }

  @Test("makes one call at a time, even where its queue runs many")
  func serial() throws {
    let inside = Atomic(0)
    let overlapped = Atomic(false)
    let second = DispatchSemaphore(value: 0)
    let heard = Heard<Int>()
    let box = Mutex<ChangeDelivery<Int>?>(nil)
    let delivery = counting(on: .global()) { number in
      if inside.add(1, ordering: .sequentiallyConsistent).newValue > 1 {
        overlapped.store(true, ordering: .sequentiallyConsistent)
      }
      second.signal()
      if number == 1 {
        second.wait()
        box.withLock { $0 }?.signal()
        // A second call would come at once; because it never comes, this always waits for the
        // bound.
        _ = second.wait(timeout: .now() + .milliseconds(300))
      }
      inside.subtract(1, ordering: .sequentiallyConsistent)
      heard.add(number)
    }
    box.withLock { $0 = delivery }
    delivery.open(signalled: true)
    try eventually("both are called") { heard.all.count == 2 }
    let didOverlap = overlapped.load(ordering: .sequentiallyConsistent)
    #expect(!didOverlap && heard.all == [1, 2])
    box.withLock { $0 = nil }
  }

  @Test("looks again from a state that is set while it looks")
  func redeliver() throws {
    let looks = Atomic(0)
    let calls = Heard<Int>()
    let box = Mutex<ChangeDelivery<Int>?>(nil)
    let delivery = ChangeDelivery<Int>(initial: 0, on: DispatchQueue(label: "test")) { last in
      if looks.add(1, ordering: .sequentiallyConsistent).newValue == 2 {
        box.withLock { $0?.redeliver(from: 0) }
      }
      let call: @Sendable () -> Void = { calls.add(1) }
      return (1, last == 1 ? nil : call)
    }
    box.withLock { $0 = delivery }
    delivery.open(signalled: true)
    try eventually("one") { calls.all.count == 1 }
    delivery.signal()
    try eventually("two", within: .seconds(3)) { calls.all.count == 2 }
    box.withLock { $0 = nil }
  }
}

@Suite("An observation", .blocking)
struct ObservationEndTests {
  let directory = Result { try TemporaryDirectory() }
  let queue = DispatchQueue(label: "test")

  @Test("holds the kernel's watch exactly as long as it lasts, however it ends")
  func watch() throws {
    let directory = try directory.get()
    let container = try directory.container()
    let value = container.value("k")
    try value.replace(with: 0)
    let path = directory.path + "/values/k"
    #expect(try !KernelWatches.contain(path))
    let first = try value.observe(on: queue) { _ in }
    var second: ObservationToken? = try value.observe(on: queue) { _ in }
    #expect(try KernelWatches.contain(path))
    first.cancel()
    #expect(try KernelWatches.contain(path), "the other one needs it")
    withExtendedLifetime(second) {}
    second = nil
    #expect(try !KernelWatches.contain(path))
    let notification = container.notification("n")
    try notification.post()
    let registration = try notification.observe(on: queue) { _ in }
    #expect(try KernelWatches.contain(directory.path + "/notifications/n"))
    registration.cancel()
    #expect(try !KernelWatches.contain(directory.path + "/notifications/n"))
  }

  @Test(
    "makes no waiting call after it was cancelled or released",
    arguments: [true, false])
  func pendingCall(isCancelled: Bool) throws {
    let directory = try directory.get()
    let heard = Heard<Int>()
    let delivery = ChangeDelivery<Int>(initial: 0, on: queue) { _ in (1, { heard.add(1) }) }
    delivery.open()
    let watch = ChangeMonitor().watch(
      path: directory.path, parents: [], prepare: {}, hear: { _ in })
    var observation: ObservationToken? = ObservationToken(watch: watch, delivery: delivery)
    queue.suspend()
    delivery.signal()
    if isCancelled { observation?.cancel() } else { observation = nil }
    queue.resume()
    let next = ChangeDelivery<Int>(initial: 0, on: queue) { _ in (1, { heard.add(2) }) }
    next.open(signalled: true)
    try eventually("the next in the queue is called") { heard.all.contains(2) }
    #expect(heard.all == [2])
    withExtendedLifetime(observation) {}
  }

  @Test("delivers a failure once, as a failure, and then the value that repairs it")
  func failure() throws {
    let directory = try directory.get()
    let value = try directory.container().value("k")
    try value.replace(with: 0)
    let heard = Heard<PlainSnapshot>()
    let observation = try value.observe(on: queue) { heard.add($0) }
    try removeFile(value.path)
    try eventually("the removal is delivered") { heard.all.count == 1 }
    try makeDirectory(value.path)
    try eventually("the failure is delivered") { heard.all.count == 2 }
    #expect(throws: WormholeError.self) { try heard.all[1].bytes() }
    for number in 0..<20 {
      try FileDescriptor.open(directory.path + "/values/k/\(number)", [.writeOnly, .create]).close()
      queue.sync {}
    }
    try value.replace(with: 1)
    try eventually("the new value is delivered") { heard.all.last?.version != nil }
    #expect(heard.all.count == 3, "\(heard.all)")
    withExtendedLifetime(observation) {}
  }

  @Test("as a sequence delivers nothing twice")
  func sequence() async throws {
    let value = try directory.get().container().value("k")
    try await value.replace(with: 0)
    let snapshots = try value.snapshots(startsWithCurrent: true)
    let heard = Heard<Int64>()
    let task = Task {
      for await snapshot in snapshots {
        heard.add(try snapshot.propertyList()?.int64Value ?? -1)
      }
    }
    try await eventuallyAsync("the current value comes first") { heard.all == [0] }
    for _ in 0..<10 {
      snapshots.latch.raise()
      for _ in 0..<100 { await Task.yield() }
    }
    try await value.replace(with: 1)
    try await eventuallyAsync("the new value comes") { heard.all.last == 1 }
    #expect(heard.all == [0, 1])
    task.cancel()
    try await task.value
  }
}
