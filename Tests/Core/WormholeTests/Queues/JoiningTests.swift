import Foundation
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

/// What a process begins as the only one, or beside the only one, and the same by another process.
enum Joining: String, CaseIterable {
  case worker = "queue-join q"
  case consumer = "queue-consume q 30"
  case subscriber = "log-subscribe l a 30"
  case alone = "alone p 30"

  /// Takes it over, and ends it.
  func replace(in container: SharedContainer) throws {
    switch self {
    case .worker, .consumer: try container.queue("q").consume(until: soon).close()
    case .subscriber: try container.log("l").subscribe("a", until: soon).close()
    case .alone: try container.presence("p").enterExclusively(until: soon).close()
    }
  }

  /// Returns what a process that has joined says, and what it says otherwise.
  func use(_ participant: Participant) throws -> (String, expected: String) {
    switch self {
    case .worker, .consumer: (try participant.ask("queue-next q 5"), "a 7")
    case .subscriber: (try participant.ask("log-next l"), "1 7")
    case .alone: (try participant.ask("confirm p"), "done")
    }
  }

  /// Whether another process has joined so, and is not to be replaced as long as it lives.
  func isTaken(in container: SharedContainer) throws -> Bool {
    switch self {
    case .worker: false
    case .consumer: try container.queue("q").role.members().contains(where: \.isExclusive)
    case .subscriber: try container.log("l").member(for: "a") != nil
    case .alone: try !container.presence("p").members().isEmpty
    }
  }

  func prepare(_ container: SharedContainer) throws {
    try container.queue("q").sender("a").enqueue(7)
    try container.log("l").append(7)
  }
}

@Suite("A process that is stopped while it joins", .blocking)
struct JoiningTests {
  #if DEBUG
    /// ```
    /// late    stopped before any of its calls; continued: joins again
    /// other   takes over, and ends
    /// ```
    @Test(
      "joins again when it was replaced meanwhile, as if nothing had happened",
      arguments: Joining.allCases)
    func replaced(_ joining: Joining) throws {
      let undisturbed = try TemporaryDirectory()
      try joining.prepare(try undisturbed.container())
      let calls = try Participant(undisturbed.path).calls(of: joining.rawValue)
      try TriedSteps.each(moreThan: 15) { step in
        let directory = try TemporaryDirectory()
        let container = try directory.container()
        try joining.prepare(container)
        let late = try Participant(directory.path)
        let isDone = try !late.stops(in: "stop \(step) \(joining.rawValue)")
        if !isDone {
          try joining.replace(in: container)
          try late.send(.continue)
        }
        let answer = try late.answer()
        #expect(!answer.hasPrefix("error"), "stopped before call \(step): \(answer)")
        let (said, expected) = try joining.use(late)
        // A stop in the last look whether it still reads, or when it has entered, is like one after that: it
        // learns the loss.
        let isAfter = [.subscriber, .alone].contains(joining) && step >= calls - 6
        #expect(
          said == expected || isAfter && said.hasPrefix("error leaseLost"),
          "stopped before call \(step) of \(calls)")
        return !isDone
      }
    }

    /// The other process cannot see whether this one is stopped, so only the time shows it.
    @Test(
      "and whose state others cannot see is in nobody's way for longer than two seconds",
      .enabled(if: Program.effectiveUser == 0, "needs a namespace for processes"),
      arguments: [Joining.worker, .consumer, .subscriber])
    func hidden(_ joining: Joining) throws {
      var steps = 0
      for step in TriedSteps.of(120, atMost: 4) {
        let directory = try TemporaryDirectory()
        let container = try directory.container()
        try joining.prepare(container)
        // Not the first process of the namespace, which could not be stopped from there.
        let late = try Participant(
          program: "unshare",
          [
            "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "\"$@\"; true", "sh",
            BuiltProgram.path("participant"), directory.path,
          ], environment: ["TMPDIR=\(directory.path)", "XDG_STATE_HOME=\(directory.path)"])
        try late.tell("stop \(step) \(joining.rawValue)")
        var stopped: Int32?
        var answer: String?
        try eventually("it is stopped, or has joined") {
          stopped = try Self.descendants(of: late.processID).first {
            ProcessStatus.of($0)?.isStopped == true
          }
          // Not yet.
          answer = stopped == nil ? try? late.answer(within: .milliseconds(20)) : nil
          return stopped != nil || answer != nil
        }
        guard let stopped else {
          #expect(answer?.hasPrefix("error") == false)
          continue
        }
        steps += 1
        let begun = ContinuousClock.now
        // It may have entered already, and then keeps what it has: nothing shows that it is stopped.
        if try !joining.isTaken(in: container) {
          try joining.replace(in: container)
          #expect(ContinuousClock.now - begun < .seconds(10))
        }
        try Program.send(.continue, to: stopped)
        let (said, expected) = (try late.answer(), try joining.use(late))
        #expect(!said.hasPrefix("error"), "stopped before call \(step): \(said)")
        #expect(expected.0 == expected.expected, "stopped before call \(step)")
      }
      #expect(steps > 0)
    }

    private static func descendants(of process: Int32) throws -> [Int32] {
      let path = "/proc/\(process)/task/\(process)/children"
      // It has ended.
      let text = try? FileDescriptor.open(path, .readOnly)
        .readToEnd(expectedBytes: 0, maximumBytes: 4_096)
      let children = String(decoding: text ?? [], as: UTF8.self).split(separator: " ")
        .compactMap { Int32($0) }
      return try children + children.flatMap { try descendants(of: $0) }
    }
  #endif

  // It made its directory, or its position, where `rm -r` had just emptied one, and that failed.
  @Test(
    "waits while a program removes what the last one leaves, which has ended with it",
    arguments: [Joining.consumer, .subscriber])
  func removal(_ joining: Joining) throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    try joining.prepare(container)
    let (queue, log) = (container.queue("q"), container.log("l"))
    let holder = try Participant(directory.path)
    _ = try holder.ask(joining.rawValue)
    let wait: () throws -> Bool
    if joining == .consumer {
      let entry = queue.store.joining(DeliveryTerms(OpenQueue(queue)), until: soon)
      wait = { if case .wait = try entry.step() { true } else { false } }
    } else {
      let entry = log.subscription("a", from: .end, until: soon)
      wait = { if case .wait = try entry.step() { true } else { false } }
    }
    #expect(try wait())
    if joining == .consumer {
      for name in try #require(try queue.open()).consumers() {
        try removeDirectory(queue.path + "/taken/" + name)
      }
    } else {
      try FileManager.default.removeItem(atPath: LogCursor.value("a", of: log).path)
    }
    try holder.end()
    let left = directory.listing
    #expect(try wait(), "it has joined")
    #expect(directory.listing == left)
    #expect(!ChangeMonitor.shared.isSettled(directory.path))
  }
}
