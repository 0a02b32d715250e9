import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

/// The other side as its own process: a test starts it, reads its output line by line, stops it,
/// continues it and kills it. It is killed at the latest when this object is released.
///
/// Every wait has a deadline; its error has the output so far. Standard output and standard error
/// are read as one stream, only when a test asks: a program that prints more than a pipe holds
/// (64 KiB) waits until then. Thread-safe; one thread at a time reads lines.
///
/// ```swift
/// let watch = try scene.start(SideProcess.built("steps-watch"), as: .watch)
/// try await watch.line(containing: "ready")
/// try await watch.stop()                      // others must not wait for it
/// try watch.resume()
/// watch.kill()
/// print(try await watch.waitForEnd())
/// ```
public final class SideProcess: Sendable {
  /// How a process ended.
  ///
  /// ```swift
  /// let end = try await scene.start(SideProcess.built("steps-watch"), as: .watch).waitForEnd()
  /// if case .killed(let signal) = end { print("by signal", signal) }
  /// ```
  public enum End: Sendable, Hashable {
    /// By itself, with a status.
    case exited(status: Int32)
    /// By a signal: 9 for `kill()`.
    case killed(signal: Int32)
  }

  /// The name of the program, for messages.
  public let name: String
  private let process: LineProcess
  private let lines = Mutex<[String]>([])
  private let outcome = Mutex<End?>(nil)
  private let isKilled = Atomic(false)

  /// Starts a program.
  ///
  /// It gets this process's environment without the variables that begin with `WORMHOLE_` or
  /// `WATCHCONNECTIVITY_`, which are the test user's; `TestScene.start` sets them for the scene.
  ///
  /// - Parameters:
  ///   - program: its path; `built(_:)` finds a program of the package under test.
  ///   - arguments: its arguments, without the program's name.
  ///   - environment: variables that are added or replaced.
  /// - Throws: `WormholeError.Code.process`.
  public init(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:]
  ) throws {
    name = String(program.split(separator: "/").last ?? "")
    let inherited = Program.environment.filter { entry in
      !["WORMHOLE_", "WATCHCONNECTIVITY_"].contains { entry.hasPrefix($0) }
        && !environment.keys.contains { entry.hasPrefix($0 + "=") }
    }
    do {
      process = try LineProcess(
        program, arguments, environment: inherited + environment.map { "\($0.key)=\($0.value)" })
    } catch {
      throw WormholeError(.process, "start \(program)", reason: "\(error)")
    }
  }

  deinit { kill() }

  /// The path of a program built with the tests: `swift build` puts it beside them.
  ///
  /// - Throws: `WormholeError.Code.process`.
  public static func built(_ name: String) throws -> String {
    do {
      let tests = try Program.executablePath()
      return tests[..<(tests.lastIndex(of: "/") ?? tests.startIndex)] + "/" + name
    } catch {
      throw WormholeError(.process, "find the program \(name)", reason: "\(error)")
    }
  }

  /// The process's number.
  public var processID: Int32 { process.processID }

  /// The lines that were read so far.
  public var output: [String] { lines.withLock { $0 } }

  // MARK: Lines

  /// Writes a line to its standard input; a pipe holds up to 64 KiB that the process has not read.
  ///
  /// - Parameters:
  ///   - line: the line, without its end.
  ///   - deadline: when to give up; by default 10 seconds from now.
  /// - Throws: `WormholeError.Code.timedOut` if it has not read enough by then, so that only part of
  ///   the line is written; `.ended` if it no longer reads its input.
  public func tell(_ line: String, until deadline: ContinuousClock.Instant? = nil) throws {
    do {
      try process.tell(line, until: deadline ?? .now + TestScene.patience)
    } catch {
      let reason = error == .timedOut ? "it does not read its input" : "\(error)"
      throw failure(
        error == .timedOut ? .timedOut : .ended, "tell \(name) \"\(line.prefix(200))\"",
        reason: reason)
    }
  }

  /// The next line that it prints.
  ///
  /// - Parameter deadline: when to give up; by default 10 seconds from now.
  /// - Throws: `WormholeError.Code.timedOut` or `.ended`, each with the output so far.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func line(until deadline: ContinuousClock.Instant? = nil) throws -> String {
    try next("a line", until: deadline)
  }

  /// The next line that it prints; see the form without `async`.
  public func line(until deadline: ContinuousClock.Instant? = nil) async throws -> String {
    try await Blocking.run { try self.line(until: deadline) }
  }

  /// The next line that contains a text; the lines before it are skipped, but stay in `output`.
  ///
  /// - Throws: as `line`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func line(
    containing text: String, until deadline: ContinuousClock.Instant? = nil
  ) throws -> String {
    let deadline = deadline ?? .now + TestScene.patience
    while true {
      let line = try next("\"\(text)\"", until: deadline)
      if line.contains(text) { return line }
    }
  }

  /// The next line that contains a text; see the form without `async`.
  @discardableResult
  public func line(
    containing text: String, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> String {
    try await Blocking.run { try self.line(containing: text, until: deadline) }
  }

  private func next(_ what: String, until deadline: ContinuousClock.Instant?) throws -> String {
    let action = "read \(what) of \(name)"
    do {
      guard let line = try process.lineIfAny(until: deadline ?? .now + TestScene.patience) else {
        throw failure(.timedOut, action, reason: "it did not print that in time")
      }
      lines.withLock { $0.append(line) }
      return line
    } catch let error as LineProcess.Failure {
      throw failure(.ended, action, reason: error.description)
    }
  }

  // MARK: Its life

  /// Suspends it (SIGSTOP), and waits until it is suspended.
  ///
  /// - Throws: `WormholeError.Code.timedOut`, or `.ended`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func stop(until deadline: ContinuousClock.Instant? = nil) throws {
    let deadline = deadline ?? .now + TestScene.patience
    do {
      try process.send(.stop)
      try process.waitUntilStopped(until: deadline)
    } catch {
      throw failure(
        ContinuousClock.now < deadline ? .ended : .timedOut, "stop \(name)", reason: "\(error)")
    }
  }

  /// Suspends it; see the form without `async`.
  public func stop(until deadline: ContinuousClock.Instant? = nil) async throws {
    try await Blocking.run { try self.stop(until: deadline) }
  }

  /// Continues it (SIGCONT).
  ///
  /// - Throws: `WormholeError.Code.ended`.
  public func resume() throws {
    do {
      try process.send(.continue)
    } catch {
      throw failure(.ended, "continue \(name)", reason: "\(error)")
    }
  }

  /// Kills it (SIGKILL), and waits until it and its open files are gone: a few milliseconds.
  /// Further calls have no effect.
  public func kill() {
    guard !isKilled.exchange(true, ordering: .acquiringAndReleasing) else { return }
    do {
      try process.end()
      outcome.withLock { $0 = $0 ?? .killed(signal: Signal.kill.rawValue) }
    } catch {
      // It has already ended, which is the aim; `waitForEnd` reports its end.
      return
    }
  }

  /// Waits until it has ended by itself, and reads its output until then.
  ///
  /// - Returns: how it ended.
  /// - Throws: `WormholeError.Code.timedOut`, with the output so far.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func waitForEnd(until deadline: ContinuousClock.Instant? = nil) throws -> End {
    let deadline = deadline ?? .now + TestScene.patience
    if let known = outcome.withLock({ $0 }) { return known }
    let action = "wait for the end of \(name)"
    do {
      while let line = try process.lineIfAny(until: deadline) {
        lines.withLock { $0.append(line) }
      }
      throw failure(.timedOut, action, reason: "it still runs")
    } catch is LineProcess.Failure {
      // Its output has ended, and so will the process.
    }
    guard let termination = try process.termination(until: deadline) else {
      throw failure(.timedOut, action, reason: "it still runs, and prints nothing any more")
    }
    let end: End
    switch termination {
    case .exited(let status): end = .exited(status: status)
    case .killed(let signal): end = .killed(signal: signal)
    }
    outcome.withLock { $0 = end }
    return end
  }

  /// Waits until it has ended by itself; see the form without `async`.
  public func waitForEnd(until deadline: ContinuousClock.Instant? = nil) async throws -> End {
    try await Blocking.run { try self.waitForEnd(until: deadline) }
  }

  private func failure(
    _ code: WormholeError.Code, _ action: String, reason: String
  ) -> WormholeError {
    let said = output.suffix(20)
    return WormholeError(
      code, action,
      reason: reason
        + (said.isEmpty
          ? "; it has printed nothing" : "; it has printed:\n" + said.joined(separator: "\n")))
  }
}
