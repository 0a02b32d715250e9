import Wormhole

/// The checks of the journals for one kind of guaranteed delivery: messages, or files.
///
/// A worker records an action before and after it. It may be killed in between, so an action that
/// has only begun may have happened or not.
struct QueueChecks {
  private struct Entry {
    let place: String
    let slot: Int
    var id: String?
    var isUnsent = false
    var mayBeCancelled = false
    var isCancelled = false
    var takes: [Take] = []
    /// How often it may have been settled.
    var settlings = 0
    var acknowledged: UInt64?
  }

  private struct Take {
    let tenure: String
    let number: UInt64
    let isRedelivery: Bool
    let from: UInt64
    let to: UInt64
  }

  private struct Tenure {
    let place: String
    let name: String
    let from: UInt64
    let to: UInt64
  }

  private let what: String
  private var entries: [UInt64: Entry] = [:]
  private var unknown: [String] = []
  private var tenures: [Tenure] = []

  /// - Parameter what: "message" or "file".
  init(_ what: String, _ journals: [[QueueEvent]]) {
    self.what = what
    for case .sending(let place, let slot, let number) in journals.joined() {
      entries[number] = Entry(place: place, slot: slot)
    }
    for event in journals.joined() { add(event) }
  }

  private mutating func add(_ event: QueueEvent) {
    switch event {
    case .sending: return
    case .sent(let number, let id): entries[number]?.id = id
    case .unsent(let number): entries[number]?.isUnsent = true
    case .cancelling(let number): entries[number]?.mayBeCancelled = true
    case .cancelled(let number, let isSo):
      entries[number]?.mayBeCancelled = isSo
      entries[number]?.isCancelled = isSo
    case .consuming(let place, let tenure, let from, let to):
      tenures.append(Tenure(place: place, name: tenure, from: from, to: to))
    case .taken(let place, let tenure, let slot, let number, let isRedelivery, let from, let to):
      guard let entry = entries[number], entry.place == place, entry.slot == slot else {
        return unknown.append("\(number) from slot \(slot) in \(place)")
      }
      entries[number]?.takes.append(
        Take(tenure: tenure, number: number, isRedelivery: isRedelivery, from: from, to: to))
    case .acknowledging(_, let number), .failing(_, let number): entries[number]?.settlings += 1
    case .unsettled(_, let number): entries[number]?.settlings -= 1
    case .acknowledged(_, let number, let time): entries[number]?.acknowledged = time
    }
  }

  var all: [Check] { [noneLost, noneCancelled, repeatsMarked, inOrder, oneConsumer] }

  /// The checks for a log, in which nothing is cancelled.
  var logs: [Check] { [noneLost, repeatsMarked, inOrder, oneConsumer] }

  private func name(_ number: UInt64) -> String {
    "\(what) \(number >> 32)/\(number & 0xFFFF_FFFF)"
  }

  private var noneLost: Check {
    let stored = entries.filter { $0.value.id != nil && !$0.value.mayBeCancelled }
    let lost = stored.filter { $0.value.settlings == 0 }.keys.sorted().map {
      "\(name($0)) in \(entries[$0]?.place ?? "") was stored, but never handled"
    }
    let unsent = entries.filter { $0.value.isUnsent && !$0.value.takes.isEmpty }.keys.sorted().map {
      "\(name($0)) was delivered, though it was reported as not stored"
    }
    return Check(
      "no stored \(what) is lost, and none arrives that was not sent", "\(stored.count) \(what)s",
      firstOf: lost + unsent + unknown.map { "\(what) \($0), which was not sent" })
  }

  private var noneCancelled: Check {
    let cancelled = entries.filter(\.value.isCancelled)
    return Check(
      "a cancelled \(what) is not delivered", "\(cancelled.count) \(what)s",
      firstOf: cancelled.filter { !$0.value.takes.isEmpty }.keys.sorted().map {
        "\(name($0)) was cancelled and delivered"
      })
  }

  /// Checks that cancelled files are back in their places.
  func givenBack(_ isThere: (_ number: UInt64) throws -> Bool) rethrows -> Check {
    let cancelled = entries.filter(\.value.isCancelled).keys.sorted()
    return Check(
      "a cancelled \(what) is where it was", "\(cancelled.count) \(what)s",
      firstOf: try cancelled.filter { try !isThere($0) }.map {
        "\(name($0)) was cancelled, and is gone"
      })
  }

  private var repeatsMarked: Check {
    var evidence: [String] = []
    for (number, entry) in entries.sorted(by: { $0.key < $1.key }) {
      let firsts = entry.takes.filter { !$0.isRedelivery }
      if firsts.count > 1 { evidence.append("\(name(number)) arrived twice, unmarked") }
      if let first = firsts.first, entry.takes.contains(where: { $0.to < first.from }) {
        evidence.append("\(name(number)) arrived unmarked although it had arrived before")
      }
      if let end = entry.acknowledged, entry.takes.contains(where: { $0.from > end }) {
        evidence.append("\(name(number)) arrived again after it was acknowledged")
      }
    }
    let repeats = entries.values.reduce(0) { $0 + $1.takes.count(where: \.isRedelivery) }
    return Check(
      "a \(what) is redelivered only if marked and not acknowledged", "\(repeats) repeats",
      firstOf: evidence)
  }

  /// No entry of a sender is delivered for the first time after a later one.
  private var inOrder: Check {
    var evidence: [String] = []
    var count = 0
    var groups: [String: [Take]] = [:]
    for entry in entries.values {
      groups["\(entry.place) \(entry.slot)", default: []] += entry.takes
    }
    for takes in groups.values {
      let ends = takes.sorted { $0.to < $1.to }
      var position = 0
      var highest: UInt64 = 0
      for take in takes.filter({ !$0.isRedelivery }).sorted(by: { $0.from < $1.from }) {
        count += 1
        while position < ends.count, ends[position].to < take.from {
          highest = max(highest, ends[position].number)
          position += 1
        }
        if highest > take.number {
          evidence.append("\(name(take.number)) arrived after \(name(highest)) of the same sender")
        }
      }
    }
    return Check("each sender's \(what)s arrive in order", "\(count) deliveries", firstOf: evidence)
  }

  /// A consumer that was replaced receives no new entries.
  private var oneConsumer: Check {
    var evidence: [String] = []
    let own = Dictionary(tenures.map { ($0.name, $0.to) }) { first, _ in first }
    let ordered = Dictionary(grouping: tenures.sorted { $0.from < $1.from }, by: \.place)
    for entry in entries.values {
      for take in entry.takes where !take.isRedelivery {
        guard let own = own[take.tenure] else { continue }
        // Only a consumer that certainly began after this one has replaced it. Of two that overlap,
        // the first in the records may be the second, which was stopped before it could record
        // that.
        let next = ordered[entry.place]?.first { $0.from > own }
        if let next, next.to < take.from {
          evidence.append(
            "\(name(take.number)) in \(entry.place) went to consumer \(take.tenure), which "
              + "\(next.name) had replaced")
        }
      }
    }
    return Check(
      "a consumer that was replaced gets nothing new", "\(tenures.count) consumers",
      firstOf: evidence.sorted())
  }

  /// Checks the statuses that the senders get at the end, when the queue is empty.
  func statuses(_ status: (_ place: String, _ slot: Int, _ id: String) throws -> QueueEntryStatus?)
    rethrows -> Check
  {
    var evidence: [String] = []
    var count = 0
    for (number, entry) in entries.sorted(by: { $0.key < $1.key }) {
      guard let id = entry.id, let reported = try status(entry.place, entry.slot, id) else {
        continue
      }
      count += 1
      let isCancelled = reported == .cancelled
      if !reported.isEnd || (isCancelled && !entry.mayBeCancelled)
        || (!isCancelled && entry.isCancelled)
      {
        evidence.append("\(name(number)) is reported as \(reported)")
      }
    }
    return Check(
      "senders learn the outcome of their \(what)s", "\(count) \(what)s", firstOf: evidence)
  }
}
