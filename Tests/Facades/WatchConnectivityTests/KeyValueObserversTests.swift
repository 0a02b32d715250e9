import Foundation
import Synchronization
import Testing
import WatchConnectivity
import WormholeTestSupport

import class WormholeUserDefaults.KeyValueObservers
import struct WormholeUserDefaults.ObservableProperty

@Suite("An observation by key path", .blocking)
struct KeyValueObserversTests {
  /// An object with one property, whose next reading can be interrupted once.
  private final class Gauge: Sendable {
    private let state = Mutex<(value: Int, interrupt: (@Sendable () -> Void)?)>((0, nil))
    let observers = KeyValueObservers<Gauge>(
      of: [ObservableProperty(\.value), ObservableProperty(\.ratio)])

    var ratio: Double { .nan }

    var other: Int { 7 }

    var value: Int {
      let (value, interrupt) = state.withLock { state in
        defer { state.interrupt = nil }
        return (state.value, state.interrupt)
      }
      interrupt?()
      return value
    }

    func set(_ value: Int, isForeign: Bool = false) {
      state.withLock { $0.value = value }
      observers.reportChanges(of: self, isForeign: isForeign)
    }

    /// The next reading is followed by another thread's change, before the value is used.
    func interruptReading(by value: Int) {
      state.withLock { $0.interrupt = { [weak self] in self?.set(value) } }
    }
  }

  private final class Recorder: Sendable {
    private let all = Mutex<[String]>([])
    var list: [String] { all.withLock { $0 } }
    func add(_ text: String) { all.withLock { $0.append(text) } }

    func note(_ change: NSKeyValueObservedChange<Int>) {
      func text(_ value: Int?) -> String { value.map { "\($0)" } ?? "-" }
      add("\(text(change.oldValue)) \(text(change.newValue))" + (change.isPrior ? " prior" : ""))
    }
  }

  @Test(
    "receives what its options ask for",
    arguments: [
      ([], ["- -", "- -"]), ([.new], ["- 1", "- 2"]), ([.old], ["0 -", "1 -"]),
      ([.initial, .new, .old], ["- 0", "0 1", "1 2"]), ([.initial], ["- -", "- -", "- -"]),
      ([.prior, .new, .old], ["0 - prior", "0 1", "1 - prior", "1 2"]),
    ] as [(NSKeyValueObservingOptions, [String])])
  func options(_ options: NSKeyValueObservingOptions, _ expected: [String]) {
    let (gauge, calls) = (Gauge(), Recorder())
    let observation = gauge.observers.observe(gauge, keyPath: \.value, options: options) {
      calls.note($1)
    }
    // An equal value is no change.
    for value in [1, 1, 2, 2] { gauge.set(value) }
    #expect(calls.list == expected)
    observation.invalidate()
    gauge.set(3)
    #expect(calls.list == expected)
  }

  @Test("receives nothing before a change that its object has not made")
  func foreignChange() {
    let (gauge, calls) = (Gauge(), Recorder())
    let options: NSKeyValueObservingOptions = [.prior, .new, .old]
    let observation = gauge.observers.observe(gauge, keyPath: \.value, options: options) {
      calls.note($1)
    }
    gauge.set(1, isForeign: true)
    gauge.set(2)
    #expect(calls.list == ["0 1", "1 - prior", "1 2"])
    observation.invalidate()
  }

  @Test("receives a value that differs from itself once for each change of the object")
  func notANumber() {
    let (gauge, calls) = (Gauge(), Recorder())
    let observation = gauge.observers.observe(gauge, keyPath: \.ratio, options: []) { _, _ in
      calls.add("NaN")
    }
    gauge.set(1)
    gauge.set(2)
    #expect(calls.list == ["NaN", "NaN"])
    observation.invalidate()
  }

  @Test("receives the last value last, if two threads change the property at once")
  func lastOfTwoThreads() {
    let (gauge, calls) = (Gauge(), Recorder())
    let observation = gauge.observers.observe(gauge, keyPath: \.value, options: [.new, .old]) {
      // The other thread's report passes this one.
      if $1.newValue == 1 {
        let hasEnded = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
          gauge.set(2)
          hasEnded.signal()
        }
        hasEnded.wait()
      }
      calls.note($1)
    }
    gauge.set(1)
    #expect(calls.list == ["1 2", "0 1", "1 2"])
    observation.invalidate()
  }

  @Test("receives a change that it makes itself once")
  func ownChange() {
    let (gauge, calls) = (Gauge(), Recorder())
    let observation = gauge.observers.observe(gauge, keyPath: \.value, options: [.new, .old]) {
      calls.note($1)
      if $1.newValue == 1 { gauge.set(2) }
    }
    gauge.set(1)
    #expect(calls.list == ["0 1", "1 2"])
    observation.invalidate()
  }

  @Test("ends when it is released, and releases its handler")
  func released() {
    let (gauge, calls) = (Gauge(), Recorder())
    weak var captured: Recorder?
    do {
      let inner = Recorder()
      captured = inner
      var observation: NSKeyValueObservation? = gauge.observers.observe(
        gauge, keyPath: \.value, options: .new
      ) {
        inner.note($1)
        calls.note($1)
      }
      gauge.set(1)
      withExtendedLifetime(observation) {}
      observation = nil
    }
    gauge.set(2)
    #expect(calls.list == ["- 1"] && captured == nil)
  }

  @Test("may be ended in its own handler, where another one may begin")
  func inHandler() {
    let (gauge, calls) = (Gauge(), Recorder())
    let kept = Mutex<[NSKeyValueObservation]>([])
    let first = gauge.observers.observe(gauge, keyPath: \.value, options: .new) { gauge, change in
      calls.note(change)
      let second = gauge.observers.observe(gauge, keyPath: \.value, options: .new) {
        calls.note($1)
      }
      for observation in kept.withLock({ kept in
        defer { kept = [second] }
        return kept
      }) {
        observation.invalidate()
      }
    }
    kept.withLock { $0 = [first] }
    gauge.set(1)
    gauge.set(2)
    #expect(calls.list == ["- 1", "- 2"])
  }

  // The last reported value used to be the old one, if another thread changed the property between
  // the reading and the report.
  @Test("receives the last value last, also if two threads change it at once")
  func twoThreads() {
    let (gauge, calls) = (Gauge(), Recorder())
    let observation = gauge.observers.observe(gauge, keyPath: \.value, options: .new) {
      calls.note($1)
    }
    gauge.interruptReading(by: 2)
    gauge.set(1)
    #expect(calls.list == ["- 2", "- 1", "- 2"])
    withExtendedLifetime(observation) {}
  }

  @Test("of a property whose changes are not reported gets the initial call only")
  func unobservable() {
    let (gauge, calls) = (Gauge(), Recorder())
    let observation = gauge.observers.observe(gauge, keyPath: \.other, options: [.initial, .new]) {
      calls.note($1)
    }
    gauge.set(1)
    #expect(calls.list == ["- 7"])
    withExtendedLifetime(observation) {}
  }

  @Test("of a transfer's progress is called in the thread that changes it")
  func progress() throws {
    let progress: Progress = ObservedProgress(totalUnitCount: 4)
    let calls = Recorder()
    let observations = [
      progress.observe(\.fractionCompleted, options: .new) { _, change in
        calls.add("\(change.newValue ?? 0) \(Thread.current.threadDictionary["role"] ?? "")")
      },
      progress.observe(\.isFinished) { progress, _ in
        calls.add("finished \(progress.isFinished)")
      },
      progress.observe(\.isCancelled) { _, _ in calls.add("cancelled") },
      progress.observe(\.totalUnitCount) { progress, _ in
        calls.add("of \(progress.totalUnitCount)")
      },
    ]
    Thread {
      Thread.current.threadDictionary["role"] = "copier"
      progress.completedUnitCount = 1
    }.start()
    try eventually("it is called") { !calls.list.isEmpty }
    Thread.current.threadDictionary["role"] = "tester"
    defer { Thread.current.threadDictionary["role"] = nil }
    progress.totalUnitCount = 2
    progress.completedUnitCount = 2
    progress.completedUnitCount = 2
    progress.cancel()
    #expect(
      calls.list == [
        "0.25 copier", "0.5 tester", "of 2", "1.0 tester", "finished true", "cancelled",
      ])
    withExtendedLifetime(observations) {}
  }

  @Test("of any other progress gets the initial call only")
  func otherProgress() {
    let progress = Progress(totalUnitCount: 2)
    let calls = Recorder()
    let observation = progress.observe(\.completedUnitCount, options: [.initial, .new]) {
      calls.add("\($1.newValue ?? -1)")
    }
    progress.completedUnitCount = 1
    #expect(calls.list == ["0"])
    withExtendedLifetime(observation) {}
  }
}
