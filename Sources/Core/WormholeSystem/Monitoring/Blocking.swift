package import Dispatch

/// The threads for a task's calls that may block. The cooperative pool has as many threads as the
/// machine has cores, and two blocked calls there stop every task of the process.
///
/// Each call has its own serial queue, because libdispatch gives such a queue a thread as soon as
/// it has work (up to 255 of them), but runs a concurrent queue's calls on as many threads as there
/// are cores, and one more per second while they block.
package enum Blocking {
  package static func queue() -> DispatchQueue { DispatchQueue(label: "wormhole.blocking") }

  /// Starts the dispatch library's first thread in two seconds, once in a process. The library opens
  /// descriptors for it, and ends the process when it gets none. So the thread is started before the end of a
  /// wait that may be long, but not for a command that has ended by then.
  package static func beginSoon() { _ = begins }

  private static let begins: Void = Timers.after(.seconds(2)) { DispatchQueue.global().async {} }

  /// Runs a closure on a thread of its own. It waits for no other call of the process: libdispatch has no
  /// thread left while 255 calls block. And it needs no descriptor, as the library's first thread does.
  package static func urgently(_ body: @escaping @Sendable () -> Void) {
    do throws(Errno) {
      try startThread(name: "wormhole.urgent", body)
    } catch {
      // No thread can be had now; the library waits until there is one.
      queue().async(execute: body)
    }
  }

  /// Runs a closure at the monitor's next poll, after a failure that may pass.
  package static func retry(_ body: @escaping @Sendable () -> Void) {
    Timers.after(ChangeMonitor.pollInterval) { urgently(body) }
  }

  /// Runs a call on a thread that may block.
  package static func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      queue().async {
        continuation.resume(with: Swift.Result { try body() })
      }
    }
  }
}
