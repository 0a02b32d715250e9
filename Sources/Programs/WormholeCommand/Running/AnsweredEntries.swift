import Synchronization
import Wormhole
import WormholeSystem

/// The printed entries of `take --ack`; a line of standard input says what became of each: `ID`
/// acknowledges it, `ID retry REASON` ends a failed attempt, `ID fail REASON` fails it for good.
final class AnsweredEntries: Sendable {
  private struct State {
    var entries: [String: PlainEntry] = [:]
    /// Whether no more lines come.
    var isOver = false
    /// Whether no more entries are to be taken.
    var isEnding = false
  }

  /// How long entries in hand may take after a signal.
  private static let grace: Duration = .seconds(10)

  private let worker: PlainConsumer
  private let mostInHand: Int
  private let backoff: Duration
  private let environment: CommandEnvironment
  private let state = Mutex(State())
  // Two threads may wait at once, and a raise wakes only the one that already blocks.
  private let room = WakeLatch()
  private let rest = WakeLatch()

  init(of worker: PlainConsumer, _ arguments: ParsedArguments, _ environment: CommandEnvironment) {
    self.worker = worker
    mostInHand = arguments.count("jobs") ?? 1
    backoff = arguments.duration("backoff") ?? .zero
    self.environment = environment
  }

  /// Begins to read the answers, on its own thread.
  func begin() throws {
    try startThread(name: "wormhole.acks") { [self] in
      do {
        try environment.forEachLine(ofFile: nil, keepsReturn: false) { line in
          answer(String(decoding: line, as: UTF8.self))
        }
      } catch {
        environment.report("\(error)")
      }
      // A wait for an entry ends, and what has no answer is given back before the process ends.
      worker.close()
      change { $0.isOver = true }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    room.raise()
    rest.raise()
  }

  /// Takes the next entry once there is room for it in the reader's hands.
  ///
  /// - Returns: nil if no more answers come, or no more entries are to be taken.
  /// - Throws: `ExitStatus.deadline` if none has come by the deadline.
  func next(until deadline: ContinuousClock.Instant) throws -> PlainEntry? {
    guard wait(for: mostInHand - 1, on: room) else { return nil }
    do {
      guard let entry = try worker.nextLive(until: deadline) else { throw ExitStatus.deadline }
      guard state.withLock(\.isEnding) else { return entry }
      try entry.giveBack()
      return nil
    } catch WormholeError.Code.invalidToken {
      return nil
    }
  }

  /// Waits for the answer to an entry that is about to be printed.
  func add(_ entry: PlainEntry) { state.withLock { $0.entries["\(entry.id)"] = entry } }

  /// From now on no entry is taken, even by a call of `next` that nobody waits for any longer.
  func takeNoMore() { change { $0.isEnding = true } }

  /// Waits for the remaining answers; after a signal not for long.
  func finish(_ interruption: Interruption) throws {
    let end = ContinuousClock.now + Self.grace
    guard !interruption.isRequested else {
      _ = wait(for: 0, on: rest, until: end)
      return
    }
    _ = try interruption.wait { self.wait(for: 0, on: self.rest) }
  }

  /// Waits until at most that many have no answer.
  ///
  /// - Returns: false if no more answers come, or after the deadline; for room, if none is needed.
  private func wait(
    for count: Int, on latch: WakeLatch, until deadline: ContinuousClock.Instant? = nil
  ) -> Bool {
    while true {
      let (isOver, inHand) = state.withLock {
        ($0.isOver || $0.isEnding && latch === room, $0.entries.count)
      }
      if isOver || deadline.hasPassed { return false }
      if inHand <= count { return true }
      latch.block(until: deadline)
    }
  }

  func answer(_ line: String) {
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    guard let id = words.first else { return }
    guard let entry = state.withLock({ $0.entries[id] }) else {
      return environment.report("\(id.quoted) is not an entry that waits for an answer")
    }
    let reason = words.count > 2 ? words[2] : "the worker gave no reason"
    do {
      switch words.dropFirst().first {
      case nil: try entry.acknowledge()
      case "retry":
        let pause = PlainEntry.pause(after: entry.attempt, backoff: backoff)
        try entry.retry(after: pause, because: reason)
      case "fail": try entry.fail(reason, isKept: true)
      case let word?:
        return environment.report(
          "\(word.quoted) is not an answer; say 'ID', 'ID retry' or 'ID fail'")
      }
    } catch {
      let isLost = (error as? WormholeError)?.code == .leaseLost
      environment.report("\(error)" + (isLost ? "" : "; \(id) still waits for an answer"))
      guard isLost else { return }
    }
    // The next entry may be the same one, to be tried again, and already be here.
    change { if $0.entries[id] === entry { $0.entries[id] = nil } }
  }
}
