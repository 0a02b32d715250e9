import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// The recorded operations of a worker.
struct Operations {
  let container: SharedContainer
  let recorder: Recorder

  /// The terms of an operation.
  struct Terms {
    var durability = Durability.standard
    var patience = Wormhole.Value.standardWait
    var term = Value.standardTerm
    var repeatsAfterLoss = true
    var disturbance = Disturbance()

    var deadline: ContinuousClock.Instant { .now + patience }
  }

  func read(_ key: String) throws -> HistoryValue? {
    let answer = try recorder.perform("read", key: key, call: .read, patience: recorder.bounds.read)
    {
      .value(try Content.number(container.value(key).read(), in: key))
    }
    if case .value(let number) = answer { return number }
    return nil
  }

  func replace(_ key: String, with number: UInt64, _ terms: Terms) throws {
    let kind = terms.durability == .durable ? "durable replace" : "replace"
    _ = try recorder.perform(
      Workload.isLarge(key) ? "large " + kind : kind, key: key, call: .write(number),
      patience: terms.patience
    ) {
      _ = try terms.disturbance.during {
        try container.value(key).replace(
          with: Content.make(number, for: key), durability: terms.durability, until: terms.deadline)
      }
      return .done
    }
  }

  func remove(_ key: String, _ terms: Terms) throws {
    _ = try recorder.perform("remove", key: key, call: .remove, patience: terms.patience) {
      _ = try terms.disturbance.during {
        try container.value(key).remove(until: terms.deadline)
      }
      return .done
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
    // The values here do not matter, because the attempts record them.
    let call = HistoryOperation.Call.update(from: nil, to: nil)
    _ = try recorder.perform(kind, key: key, call: call, patience: terms.patience) {
      try edit(key, terms: terms) { content in
        try attempts.change(&content, change)
        if fails { throw Deliberate() }
      }
      return .done
    }
  }

  func compareAndSet(
    _ key: String, from expected: HistoryValue?, to new: UInt64, _ terms: Terms
  ) throws {
    let attempts = Attempts(recorder, key, disturbance: terms.disturbance)
    let call = HistoryOperation.Call.compareAndSwap(expected: expected, new: new)
    _ = try recorder.perform("compare-and-set", key: key, call: call, patience: terms.patience) {
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

  /// Increments both twins in one step.
  func incrementTwins(_ terms: Terms) throws {
    let attempts = Attempts(recorder, Workload.twins[0], disturbance: terms.disturbance)
    let call = HistoryOperation.Call.update(from: nil, to: nil)
    _ = try recorder.perform(
      "increment of two", key: Workload.twins[0], call: call, patience: terms.patience
    ) {
      try terms.disturbance.during {
        try container.update(
          Workload.twins, durability: terms.durability, until: terms.deadline, term: terms.term,
          repeatsAfterLoss: terms.repeatsAfterLoss
        ) { values in
          let numbers = try Workload.twins.map { try Content.number(values[$0], in: $0) }
          if numbers[0] != numbers[1] {
            try recorder.note(.uneven("an update found \(numbers)"))
          }
          try attempts.change(&values[Workload.twins[0]]) { ($0 ?? 0) + 1 }
          values[Workload.twins[1]] = Content.make((numbers[0] ?? 0) + 1, for: Workload.twins[1])
        }
      }
      return .done
    }
  }

  /// Reads the twins one after the other: the second one may have changed in between, but it is not
  /// older than the first one.
  func readTwins(_ first: Int) throws {
    let keys = [Workload.twins[first], Workload.twins[1 - first]]
    let numbers = try keys.map { try Content.number(container.value($0).read(), in: $0) ?? 0 }
    if numbers[0] > numbers[1] {
      try recorder.note(.uneven("\(keys[0]) was \(numbers[0]), and then \(keys[1]) \(numbers[1])"))
    }
    try recorder.note(.did("read of two"))
  }

  private func edit<Result: Sendable>(
    _ key: String, terms: Terms,
    _ body: @escaping @Sendable (inout PropertyListValue?) throws -> Result
  ) throws -> Result {
    try terms.disturbance.during {
      try container.value(key).update(
        durability: terms.durability, until: terms.deadline, term: terms.term,
        repeatsAfterLoss: terms.repeatsAfterLoss, body)
    }
  }

  // MARK: Notifications

  func setState(_ number: UInt64, _ terms: Terms) throws {
    _ = try recorder.perform(
      "set state", key: Workload.state, call: .write(number), patience: terms.patience
    ) {
      try terms.disturbance.during {
        try container.notification(Workload.bells[0]).setState(number, until: terms.deadline)
      }
      return .done
    }
  }

  func state() throws {
    _ = try recorder.perform(
      "get state", key: Workload.state, call: .read, patience: recorder.bounds.read
    ) {
      .value(try container.notification(Workload.bells[0]).state())
    }
  }

  func post(_ bell: String, _ disturbance: Disturbance) throws {
    try recorder.note(.posting(bell: bell, at: bootTimeNanoseconds()))
    do {
      try disturbance.during { try container.notification(bell).post() }
    } catch let error as AppGroupError where error.code == .unreachable {
      try recorder.note(.unposted)
      throw error
    }
    try recorder.note(.posted(at: bootTimeNanoseconds()))
    try recorder.note(.did("post"))
  }

  func check(_ bell: String, _ registration: NotificationRegistration) throws {
    let beginning = bootTimeNanoseconds()
    let heard = try registration.check()
    try recorder.note(
      .checked(bell: bell, from: beginning, to: bootTimeNanoseconds(), heard: heard))
    try recorder.note(.did("check"))
  }
}
