import Dispatch

/// Where calls that may block run when a task makes them: the cooperative pool is as wide as the
/// machine has cores, and two blocked calls there stop every task of the process (DESIGN §6).
enum Blocking {
  static let queue = DispatchQueue(label: "wormhole.blocking", attributes: .concurrent)

  /// Runs a call on a thread that may block.
  static func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      queue.async {
        continuation.resume(with: Swift.Result { try body() })
      }
    }
  }
}
