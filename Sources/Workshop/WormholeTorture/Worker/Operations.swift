import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// The recorded operations of a worker.
struct Operations {
  let container: SharedContainer
  let recorder: Recorder

  struct Terms {
    var durability = Durability.standard
    var patience = SharedContainer.standardWait
    var term = SharedContainer.standardTerm
    var repeatsAfterLoss = true
    var disturbance = Disturbance()

    var deadline: ContinuousClock.Instant { .now + patience }
  }

  func read(_ key: String) throws -> HistoryValue? {
    try read("read", key) { try Content.number(container.value(key).read(), in: key) }
  }

  private func read(
    _ kind: String, _ key: String, _ body: () throws -> HistoryValue?
  ) throws -> HistoryValue? {
    let patience = recorder.patienceWithoutDeadline
    let answer = try recorder.perform(kind, key: key, call: .read, patience: patience) {
      .value(try body())
    }
    guard case .value(let number) = answer else { return nil }
    return number
  }

  /// Records a change, and disturbs it.
  private func change(
    _ kind: String, _ key: String, _ call: HistoryOperation.Call, _ terms: Terms,
    _ body: () throws -> Void
  ) throws {
    _ = try recorder.perform(kind, key: key, call: call, patience: terms.patience) {
      try terms.disturbance.during(body)
      return .done
    }
  }

  func replace(_ key: String, with number: UInt64, _ terms: Terms) throws {
    let kind = terms.durability == .durable ? "durable replace" : "replace"
    try change(Workload.isLarge(key) ? "large " + kind : kind, key, .write(number), terms) {
      try container.value(key).replace(
        with: Content.make(number, for: key), durability: terms.durability, until: terms.deadline)
    }
  }

  func remove(_ key: String, _ terms: Terms) throws {
    try change("remove", key, .write(nil), terms) {
      _ = try container.value(key).remove(until: terms.deadline)
    }
  }

  /// Changes the current value with a closure.
  ///
  /// - Parameter fails: Whether the closure throws after it has set the new value.
  func update(
    _ kind: String, key: String, terms: Terms, fails: Bool = false,
    _ change: @escaping @Sendable (HistoryValue?) -> HistoryValue
  ) throws {
    let attempts = Attempts(recorder, key, disturbance: terms.disturbance)
    try self.change(kind, key, Self.tried, terms) {
      try edit(key, terms: terms) { content in
        try attempts.change(&content, change)
        if fails { throw Deliberate() }
      }
    }
  }

  /// An update whose values do not matter, because the attempts record them.
  static let tried = HistoryOperation.Call.update(from: nil, to: nil)

  func compareAndSet(
    _ key: String, from expected: HistoryValue?, to new: UInt64, _ terms: Terms
  ) throws {
    let attempts = Attempts(recorder, key, disturbance: terms.disturbance)
    let call = HistoryOperation.Call.compareAndSwap(expected: expected, new: new)
    _ = try recorder.perform("compare-and-set", key: key, call: call, patience: terms.patience) {
      try terms.disturbance.during {
        .swapped(
          try edit(key, terms: terms) { content in
            let old = try attempts.begin(content)
            try terms.disturbance.act()
            guard old == expected else { return false }
            content = Content.make(new, for: key)
            return true
          })
      }
    }
  }

  /// Increments both twins in one step.
  func incrementTwins(_ terms: Terms) throws {
    let attempts = Attempts(recorder, Workload.twins[0], disturbance: terms.disturbance)
    try change("increment of two", Workload.twins[0], Self.tried, terms) {
      try container.update(
        Workload.twins, durability: terms.durability, until: terms.deadline, term: terms.term,
        repeatsAfterLoss: terms.repeatsAfterLoss
      ) { values in
        let numbers = try Workload.twins.map { try Content.number(values[$0], in: $0) }
        if numbers[0] != numbers[1] {
          try recorder.note(.broke(.together, "an update found \(numbers)"))
        }
        try attempts.change(&values[Workload.twins[0]]) { ($0 ?? 0) + 1 }
        values[Workload.twins[1]] = Content.make((numbers[0] ?? 0) + 1, for: Workload.twins[1])
      }
    }
  }

  /// Reads the twins one after another: the second one may have changed in between, but it is not
  /// older than the first one.
  func readTwins(_ first: Int) throws {
    let keys = [Workload.twins[first], Workload.twins[1 - first]]
    let numbers = try keys.map { try Content.number(container.value($0).read(), in: $0) ?? 0 }
    if numbers[0] > numbers[1] {
      try recorder.note(
        .broke(.together, "\(keys[0]) was \(numbers[0]), and then \(keys[1]) \(numbers[1])"))
    }
    try recorder.note(.did("read of two"))
  }

  private func edit<Result: Sendable>(
    _ key: String, terms: Terms,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) throws -> Result {
    try container.value(key).update(
      durability: terms.durability, until: terms.deadline, term: terms.term,
      repeatsAfterLoss: terms.repeatsAfterLoss, body)
  }

  // MARK: Notifications

  func setState(_ number: UInt64, _ terms: Terms) throws {
    try change("set state", Workload.state, .write(number), terms) {
      try container.notification(Workload.notifications[0]).setState(number, until: terms.deadline)
    }
  }

  func state() throws {
    _ = try read("get state", Workload.state) {
      try container.notification(Workload.notifications[0]).state()
    }
  }

  func post(_ name: String, _ disturbance: Disturbance) throws {
    let patience = recorder.patienceWithoutDeadline
    _ = try recorder.perform("post", key: name, call: .write(nil), patience: patience) {
      try disturbance.during { try container.notification(name).post() }
      return .done
    }
  }

  func check(_ name: String, _ registration: NotificationRegistration) throws {
    let beginning = bootTimeNanoseconds()
    let heard = try registration.check()
    try recorder.note(
      .checked(name: name, from: beginning, to: bootTimeNanoseconds(), heard: heard), .did("check"))
  }
}

/// The runs of an update's closure; more than one means that the lease was taken over.
final class Attempts: Sendable {
  private let recorder: Recorder
  private let key: String
  private let disturbance: Disturbance
  private let count = Atomic(0)

  init(_ recorder: Recorder, _ key: String, disturbance: Disturbance) {
    self.recorder = recorder
    self.key = key
    self.disturbance = disturbance
  }

  /// Begins a run; returns the value that it found.
  func begin(_ content: PropertyListValue?) throws -> HistoryValue? {
    if count.wrappingAdd(1, ordering: .relaxed).oldValue > 0 { try recorder.note(.retried) }
    return try Content.number(content, in: key)
  }

  /// Makes a whole run: changes the content, and records the try.
  func change(
    _ content: inout PropertyListValue?, _ change: (HistoryValue?) -> HistoryValue
  ) throws {
    let old = try begin(content)
    let new = change(old)
    content = Content.make(new, for: key)
    try recorder.note(.tried(from: old, to: new))
    try disturbance.act()
  }
}
