public import WatchConnectivity
import Wormhole
import WormholeSystem

// Sessions that end: an app has one for as long as its process runs; a test has its own.
extension WCSession {
  /// Ends this process's session, and makes a new `WCSession.default`, whose place `configure` or
  /// the environment sets.
  ///
  /// When this returns, the previous session has no presence and no task, its messages under way
  /// have ended with an error, and neither its delegate nor a handler is called any longer. Objects
  /// that kept it get `sessionNotActivated` from `activate()`.
  ///
  /// The process has one such session, so tests that use it must run one after another: in Swift
  /// Testing, in one suite with `.serialized`, and no other suite may use the session. Use
  /// `asDefault` to run tests in parallel.
  ///
  /// - Parameter deadline: when to stop waiting for a running method of the delegate; by default 10
  ///   seconds from now.
  /// - Throws: `WormholeError.Code.timedOut`. The next session exists nevertheless.
  public static func reset(until deadline: ContinuousClock.Instant? = nil) async throws {
    try await replaceDefault().end(until: deadline)
  }

  /// Ends this process's session; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public static func reset(until deadline: ContinuousClock.Instant? = nil) throws {
    try replaceDefault().end(until: deadline)
  }

  /// Ends this session permanently; see `reset`. Further calls have no effect.
  ///
  /// - Throws: `WormholeError.Code.timedOut` if a method of its delegate does not return.
  public func end(until deadline: ContinuousClock.Instant? = nil) async throws {
    try await Blocking.run { try self.end(until: deadline) }
  }

  /// Ends this session permanently; see the form with `async`. Blocks the calling thread.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func end(until deadline: ContinuousClock.Instant? = nil) throws {
    let end = Awaited<Void>()
    Task {
      await endForGood()
      end.settle(())
    }
    guard end.wait(until: deadline ?? .now + TestScene.patience) != nil else {
      throw WormholeError(
        .timedOut, "end a session",
        reason: "a method of its delegate, or a handler, does not return")
    }
  }

  /// Makes this session `WCSession.default` within a function, and in the tasks that it starts.
  ///
  /// It is also the default in every delegate or handler call that the session makes. That is lost
  /// if code continues by means other than tasks: in a closure given to a `DispatchQueue`, an
  /// `OperationQueue` or a `Thread`, and in `Task.detached`. There `WCSession.default` is the
  /// process's session; tests of such code use `reset`.
  ///
  /// - Parameter body: the function.
  /// - Returns: the function's result.
  public func asDefault<Result>(_ body: () throws -> Result) rethrows -> Result {
    try withDefault(body)
  }

  /// Makes this session `WCSession.default` within an async function; see the other form.
  public func asDefault<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await withDefault(isolation: isolation, body)
  }
}
