package import Dispatch

/// Where calls that may block run when a task makes them: the cooperative pool is as wide as the
/// machine has cores, and two blocked calls there stop every task of the process (DESIGN §6).
///
/// Each call has a serial queue of its own, for libdispatch gives such a queue a thread as soon as
/// it has work (255 of them at most), but runs a concurrent queue's calls on as many threads as
/// there are cores, and one more a second while they block.
package enum Blocking {
  /// For deadlines, which must not wait behind calls that block.
  package static let timers = DispatchQueue(label: "wormhole.timers")

  package static func queue() -> DispatchQueue { DispatchQueue(label: "wormhole.blocking") }

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
