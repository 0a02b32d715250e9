import Wormhole

/// The checks of the journals for one kind of guaranteed delivery: messages, files, or a log's messages.
///
/// A worker records an action before and after it. It may be killed in between, so an action that
/// has only begun may or may not have happened.
struct DeliveryChecks {
  private struct Entry {
    let place: String
    let number: UInt64
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
    let epoch: String
    let number: UInt64
    let isRedelivery: Bool
    let from: UInt64
    let to: UInt64
  }

  private struct Epoch {
    let place: String
    let name: String
    let from: UInt64
    let to: UInt64
  }

  private let what: String
  /// In the order of their numbers.
  private let entries: [Entry]
  private var unknown: [String] = []
  private var epochs: [Epoch] = []

  /// - Parameter what: "message" or "file".
  init(_ what: String, _ journals: [[Delivery]]) {
    self.what = what
    var found: [String: Entry] = [:]
    for delivery in journals.joined() {
      guard case .sending(let slot) = delivery.event else { continue }
      found[delivery.key] = Entry(place: delivery.place, number: delivery.number, slot: slot)
    }
    for delivery in journals.joined() {
      switch delivery.event {
      case .consuming(let epoch, let from, let to):
        epochs.append(Epoch(place: delivery.place, name: epoch, from: from, to: to))
      case .taken(_, let slot, _, _, _) where found[delivery.key]?.slot != slot:
        unknown.append("\(delivery.number) from slot \(slot) in \(delivery.place)")
      default: Self.note(delivery.event, in: &found[delivery.key])
      }
    }
    entries = found.values.sorted { ($0.number, $0.place) < ($1.number, $1.place) }
  }

  private static func note(_ event: Delivery.Event, in entry: inout Entry?) {
    switch event {
    case .sending, .consuming: return
    case .sent(let id): entry?.id = id
    case .unsent: entry?.isUnsent = true
    case .cancelling: entry?.mayBeCancelled = true
    case .cancelled(let isSo):
      entry?.mayBeCancelled = isSo
      entry?.isCancelled = isSo
    case .taken(let epoch, _, let isRedelivery, let from, let to):
      let number = entry?.number ?? 0
      entry?.takes.append(
        Take(epoch: epoch, number: number, isRedelivery: isRedelivery, from: from, to: to))
    case .acknowledging, .failing: entry?.settlings += 1
    case .unsettled: entry?.settlings -= 1
    case .acknowledged(let time): entry?.acknowledged = time
    }
  }

  /// The checks; for a log without those of what cannot happen there: nothing is cancelled.
  func all(isLog: Bool = false) -> [Check] {
    [noneLost] + (isLog ? [] : [noneCancelled]) + [repeatsMarked, inOrder, oneConsumer]
  }

  private func name(_ number: UInt64) -> String {
    "\(what) \(number >> 32)/\(number & 0xFFFF_FFFF)"
  }

  private var noneLost: Check {
    let stored = entries.filter { $0.id != nil && !$0.mayBeCancelled }
    let lost = stored.filter { $0.settlings == 0 }.map {
      "\(name($0.number)) in \($0.place) was stored, but never handled"
    }
    let unsent = entries.filter { $0.isUnsent && !$0.takes.isEmpty }.map {
      "\(name($0.number)) was delivered, though it was reported as not stored"
    }
    return Check(
      "no stored \(what) is lost, and none arrives that was not sent", "\(stored.count) \(what)s",
      firstOf: lost + unsent + unknown.map { "\(what) \($0), which was not sent" })
  }

  private var noneCancelled: Check {
    let cancelled = entries.filter(\.isCancelled)
    return Check(
      "a cancelled \(what) is not delivered", "\(cancelled.count) \(what)s",
      firstOf: cancelled.filter { !$0.takes.isEmpty }.map {
        "\(name($0.number)) was cancelled and delivered"
      })
  }

  /// Checks that cancelled files are back in their places.
  func givenBack(_ isThere: (_ number: UInt64) throws -> Bool) rethrows -> Check {
    let cancelled = entries.filter(\.isCancelled)
    return Check(
      "a cancelled \(what) is where it was", "\(cancelled.count) \(what)s",
      firstOf: try cancelled.filter { try !isThere($0.number) }.map {
        "\(name($0.number)) was cancelled, and is gone"
      })
  }

  private var repeatsMarked: Check {
    var evidence: [String] = []
    for entry in entries {
      let firsts = entry.takes.filter { !$0.isRedelivery }
      if firsts.count > 1 { evidence.append("\(name(entry.number)) arrived twice, unmarked") }
      if let first = firsts.first, entry.takes.contains(where: { $0.to < first.from }) {
        evidence.append("\(name(entry.number)) arrived unmarked although it had arrived before")
      }
      if let end = entry.acknowledged, entry.takes.contains(where: { $0.from > end }) {
        evidence.append("\(name(entry.number)) arrived again after it was acknowledged")
      }
    }
    let repeats = entries.reduce(0) { $0 + $1.takes.count(where: \.isRedelivery) }
    return Check(
      "a \(what) is redelivered only if marked and not acknowledged", "\(repeats) repeats",
      firstOf: evidence)
  }

  /// No sender's entry is delivered for the first time after a later one.
  private var inOrder: Check {
    var evidence: [String] = []
    var count = 0
    for entries in Dictionary(grouping: entries, by: { "\($0.place) \($0.slot)" }).values {
      let ends = entries.flatMap(\.takes).sorted { $0.to < $1.to }
      var position = 0
      var highest: UInt64 = 0
      for take in ends.filter({ !$0.isRedelivery }).sorted(by: { $0.from < $1.from }) {
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
    let own = Dictionary(epochs.map { ($0.name, $0.to) }) { first, _ in first }
    let ordered = Dictionary(grouping: epochs.sorted { $0.from < $1.from }, by: \.place)
    for entry in entries {
      for take in entry.takes where !take.isRedelivery {
        guard let own = own[take.epoch] else { continue }
        // Only a consumer that certainly began after this one has replaced it. Of two that overlap,
        // the first in the records may be the second, which was stopped before it could record
        // that.
        let next = ordered[entry.place]?.first { $0.from > own }
        if let next, next.to < take.from {
          evidence.append(
            "\(name(take.number)) in \(entry.place) went to consumer \(take.epoch), which "
              + "\(next.name) had replaced")
        }
      }
    }
    return Check(
      "a consumer that was replaced gets nothing new", "\(epochs.count) consumers",
      firstOf: evidence)
  }

  /// Checks the statuses that the senders get at the end, when the queue is empty.
  func statuses(_ status: (_ place: String, _ slot: Int, _ id: String) throws -> QueueEntryStatus?)
    rethrows -> Check
  {
    var evidence: [String] = []
    var count = 0
    for entry in entries {
      guard let id = entry.id, let reported = try status(entry.place, entry.slot, id) else {
        continue
      }
      count += 1
      let isCancelled = reported == .cancelled
      if !reported.isEnd || (isCancelled && !entry.mayBeCancelled)
        || (!isCancelled && entry.isCancelled)
      {
        evidence.append("\(name(entry.number)) is reported as \(reported)")
      }
    }
    return Check(
      "senders learn the outcome of their \(what)s", "\(count) \(what)s", firstOf: evidence)
  }
}

extension Delivery {
  fileprivate var key: String { "\(number) \(place)" }
}
