import Dispatch
import Synchronization
package import Wormhole
import WormholeSystem
import WormholeToolkit

/// How a listener receives a message.
package enum Ear: String, CaseIterable, Sendable {
  case blocked, handler, task
}

/// One side of a game of ping-pong through two values: it receives one and sends the other.
package protocol Side: Sendable {
  func send(_ number: UInt64) throws
  /// Calls a closure with each number received from now on, as that kind of listener is called. A
  /// blocked one has its own thread, which ends after the number `Game.last`.
  func listen(_ ear: Ear, _ body: @escaping @Sendable (UInt64) -> Void) throws
}

extension Side {
  /// Answers each number with itself.
  package func echo(_ ear: Ear, _ failure: FirstFailure) throws {
    try listen(ear) { number in failure.noting { try self.send(number) } }
  }
}

/// A game whose player is called: each received pong sends the next ping.
package final class Game: Sendable {
  private struct State {
    var number: UInt64 = 0
    var left = 0
    var sent = ContinuousClock.now
    var times: [Double] = []
  }

  /// The number that ends the threads of blocked listeners.
  static let last = UInt64.max >> 1

  private let side: any Side
  private let failure: FirstFailure
  private let state = Mutex(State())
  private let isOver = DispatchSemaphore(value: 0)

  /// - Parameter failure: Gets the failures of the threads of both sides that are in this process.
  package init(_ side: any Side, _ ear: Ear, _ failure: FirstFailure = FirstFailure()) throws {
    self.side = side
    self.failure = failure
    try side.listen(ear) { [weak self] in self?.hear($0) }
  }

  /// - Returns: The nanoseconds of each half round trip.
  package func play(_ count: Int) throws -> [Double] {
    state.withLock { $0 = State(number: $0.number, left: count) }
    try serve()
    let isAnswered = isOver.wait(timeout: .now() + 60) == .success
    try failure.check()
    guard isAnswered else { throw Failure(description: "the other side does not answer") }
    return state.withLock { $0.times }
  }

  /// Ends the threads and tasks of both sides, with a last ball.
  package func end() throws {
    state.withLock { $0.number = Self.last - 1 }
    _ = try play(1)
  }

  private func serve() throws {
    let number = state.withLock { state in
      state.number += 1
      state.sent = .now
      return state.number
    }
    try side.send(number)
  }

  private func hear(_ number: UInt64) {
    let now = ContinuousClock.now
    let left = state.withLock { state -> Int? in
      guard number == state.number else { return nil }
      state.times.append((now - state.sent).nanoseconds / 2)
      state.left -= 1
      return state.left
    }
    guard let left else { return }
    if left == 0 { isOver.signal() } else { failure.noting { try serve() } }
  }
}

package final class SharedSide: Side {
  private let heard: PlainValue
  private let sent: PlainValue
  private let observation = Mutex<ObservationToken?>(nil)

  package init(_ container: SharedContainer, hears: String, sends: String) {
    heard = container.value(hears)
    sent = container.value(sends)
  }

  package func send(_ number: UInt64) throws { try sent.replace(with: SharedCount.content(number)) }

  package func listen(_ ear: Ear, _ body: @escaping @Sendable (UInt64) -> Void) throws {
    let hear = { @Sendable (snapshot: PlainSnapshot) -> UInt64 in
      // Content that cannot be read is an answer that does not come, which the player reports.
      let number = SharedCount.number(try? snapshot.propertyList())
      body(number)
      return number
    }
    switch ear {
    case .blocked:
      let snapshots = try heard.snapshots()
      try startThread(name: "listener") {
        var heard = snapshots.makeAsyncIterator()
        while let snapshot = heard.next(until: .now + .seconds(3_600)) {
          guard hear(snapshot) != Game.last else { return }
        }
      }
    case .handler:
      let token = try heard.observe(on: DispatchQueue(label: "listener")) { _ = hear($0) }
      observation.withLock { $0 = token }
    case .task:
      let snapshots = try heard.snapshots()
      Task {
        for await snapshot in snapshots {
          guard hear(snapshot) != Game.last else { return }
        }
      }
    }
  }
}

/// The floor's side of a game: it writes and reads the same files with bare calls, and waits for inotify.
package final class Paddle: Side {
  private let heard: RawValue
  private let sent: RawValue
  private let events: FileDescriptor
  // The other side may answer before this one has removed what it replaced, and then another thread
  // sends the next ping.
  private let sending = Mutex(())

  /// Each side makes both values.
  package init(_ directory: String, hears: String, sends: String) throws {
    heard = try RawValue(directory, hears)
    sent = try RawValue(directory, sends)
    try sent.publish(RawValue.content(0))
    events = try .blockingEventQueue()
    _ = try events.addWatch(directory + "/values/" + hears, [.movedTo, .onlyDirectory])
  }

  package func send(_ number: UInt64) throws {
    try sending.withLock { _ in try sent.publish(RawValue.content(number)) }
  }

  /// Reads on its own thread, and hands each number over: to a queue, or to a task.
  package func listen(_ ear: Ear, _ body: @escaping @Sendable (UInt64) -> Void) throws {
    let queue = DispatchQueue(label: "floor")
    let (numbers, source) = AsyncStream<UInt64>.makeStream()
    if ear == .task { Task { for await number in numbers { body(number) } } }
    try startThread(name: "floor") {
      var last: UInt64 = 0
      while last != Game.last {
        // It fails once the run is over, and its directory gone.
        guard let number = try? self.next(after: last) else { return }
        last = number
        switch ear {
        case .blocked: body(number)
        case .handler: queue.async { body(number) }
        case .task: source.yield(number)
        }
      }
    }
  }

  /// Waits until the value holds a number other than the last one.
  private func next(after last: UInt64) throws(Errno) -> UInt64 {
    while true {
      _ = try events.takeEvents { _, _ in }
      let number = try heard.read()
      if number != last { return number }
    }
  }
}
