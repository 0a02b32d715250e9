import Dispatch
import Wormhole
import WormholeSystem
import WormholeWorkshop

/// A worker's operations with `await`, beside its thread: increments, some of which are cancelled
/// while they wait.
struct TaskStrand {
  let container: SharedContainer
  let recorder: Recorder
  let arguments: WorkerArguments
  private let hasEnded = DispatchSemaphore(value: 0)

  func begin() {
    Task {
      do {
        try await work()
      } catch {
        Terminal.say("torture: \(error)")
        Program.exit(74)
      }
      hasEnded.signal()
    }
  }

  /// Waits for the end; blocks the calling thread.
  func waitForEnd() { hasEnded.wait() }

  private func work() async throws {
    var random = SeededGenerator(seed: ~mix(arguments.seed) ^ UInt64(arguments.life))
    while bootTimeNanoseconds() < arguments.end {
      var terms = Operations.Terms()
      if random.chance(30) { terms.disturbance.pause = random.milliseconds(0...15) }
      if random.chance(10) { terms.patience = random.milliseconds(-5...60) }
      terms.disturbance.stopsInClosure = random.chance(3)
      let cancellation = random.chance(20) ? random.milliseconds(0...40) : nil
      try await increment(Workload.counters[2], terms, cancelledAfter: cancellation)
      try await Task.sleep(for: random.milliseconds(0...20))
    }
  }

  private func increment(
    _ key: String, _ terms: Operations.Terms, cancelledAfter cancellation: Duration?
  ) async throws {
    let attempts = Attempts(recorder, key, disturbance: terms.disturbance)
    let call = HistoryOperation.Call.update(from: nil, to: nil)
    let change = Task { [self] in
      try await recorder.perform(
        "awaited increment", key: key, call: call, patience: terms.patience
      ) {
        try await container.value(key).update(until: terms.deadline) {
          try attempts.change(&$0) { ($0 ?? 0) + 1 }
        }
        return .done
      }
    }
    if let cancellation {
      try await Task.sleep(for: cancellation)
      change.cancel()
    }
    try await change.value
  }
}
