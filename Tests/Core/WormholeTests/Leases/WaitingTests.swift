import Synchronization
import Testing
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

@Suite("A wait", .blocking)
struct WaitingTests {
  /// Takes the given steps, and says when it is released.
  private final class Scripted: Waiting {
    private var steps: [WaitingStep<Int>]
    private let released: @Sendable () -> Void

    init(_ steps: [WaitingStep<Int>], released: @escaping @Sendable () -> Void) {
      self.steps = steps.reversed()
      self.released = released
    }

    deinit { released() }

    func step() -> WaitingStep<Int> { steps.popLast() ?? .done(0) }
  }

  @Test("takes the same steps for a thread and for a task, and is released at its end")
  func drivers() async throws {
    let released = Mutex(0)
    let raised = WakeLatch()
    let make: @Sendable () -> sending Scripted = {
      raised.raise()
      return Scripted([
        .spin(.microseconds(1)), .wait(for: raised, until: nil), .spin(.zero),
        .wait(for: WakeLatch(), until: .now), .done(7),
      ]) { released.withLock { $0 += 1 } }
    }
    #expect(try await Blocking.run { try make().run() } == 7)
    #expect(released.withLock { $0 } == 1)
    #expect(try await runSuspending(make) == 7)
    #expect(released.withLock { $0 } == 2)
  }

  @Test("of a cancelled task ends with an error, and releases what it has")
  func cancellation() async throws {
    let released = Mutex(false)
    let latch = WakeLatch()
    let task = Task {
      try await runSuspending {
        Scripted([.wait(for: latch, until: nil)]) { released.withLock { $0 = true } }
      }
    }
    try await Blocking.run { try eventually("it waits") { latch.isAwaited } }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(released.withLock { $0 })
  }

  /// A release may call the file system, and the cooperative pool has as many threads as cores.
  @Test("of a task is released on a thread that may block", arguments: [false, true])
  func releasing(_ isCancelled: Bool) async throws {
    let wasOnPool = Mutex<Bool?>(nil)
    let latch = WakeLatch()
    let task = Task {
      try await runSuspending {
        Scripted(isCancelled ? [.wait(for: latch, until: nil)] : []) {
          wasOnPool.withLock { $0 = withUnsafeCurrentTask { $0 != nil } }
        }
      }
    }
    if isCancelled {
      try await Blocking.run { try eventually("it waits") { latch.isAwaited } }
      task.cancel()
    }
    _ = await task.result
    #expect(wasOnPool.withLock { $0 } == false)
  }

  /// Waits first, and then is done with what it was asked for.
  private final class Prompt: Waiting {
    private let latch: WakeLatch
    private let steps = Heard<String>()
    private let promptly: @Sendable () -> [String]?

    init(_ latch: WakeLatch, _ promptly: @escaping @Sendable () -> [String]?) {
      self.latch = latch
      self.promptly = promptly
    }

    func step() -> WaitingStep<[String]> {
      steps.add("step")
      return steps.all.count > 1 ? .done(steps.all) : .wait(for: latch, until: nil)
    }

    func promptStep() -> WaitingStep<[String]>? {
      steps.add("prompt")
      return promptly().map { .done(steps.all + $0) }
    }
  }

  @Test("of a task takes a step that never waits where the latch is raised, others elsewhere")
  func promptSteps() async throws {
    for isPrompt in [true, false] {
      let latch = WakeLatch()
      let isRaising = Atomic(false)
      let task = Task {
        try await runSuspending {
          Prompt(latch) {
            isPrompt ? ["\(isRaising.load(ordering: .sequentiallyConsistent))"] : nil
          }
        }
      }
      try await Blocking.run {
        try eventually("it waits") { latch.isAwaited }
        isRaising.store(true, ordering: .sequentiallyConsistent)
        latch.raise()
        isRaising.store(false, ordering: .sequentiallyConsistent)
      }
      #expect(try await task.value == ["step", "prompt", isPrompt ? "true" : "step"])
    }
  }

  @Test("for a lease does not sleep in its steps: the first one says how long to pause")
  func steps() throws {
    let scene = try LeaseScene()
    let holder = try scene.acquire(term: .seconds(600))
    let request = try scene.request()
    guard case .spin(let pause) = try request.step() else {
      Issue.record("the lease is held")
      return
    }
    #expect(pause <= .milliseconds(1))
    holder.end()
    try LeaseScene.finish(request).end()
  }
}
