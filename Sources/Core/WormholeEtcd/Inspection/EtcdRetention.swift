import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists

/// Removes what processes left behind that have not come back for a month: who was present last
/// (`last`, `h`), and the last order of a sender (`s/<sender>`).
///
/// Keys have no times on which all machines agree, so a sweep notes the revision of its own day;
/// what has not changed since the revision of a month ago is old. A sender or a process that comes
/// back later counts as a new one.
///
/// ```
/// <prefix>/sweeps    a list: `date` and `revision` of each sweep, at most one a day, the oldest first
/// ```
struct EtcdRetention {
  /// The least time that traces stay.
  static let term: TimeInterval = 30 * 86_400
  private static let interval: TimeInterval = 86_400

  private struct Mark {
    let date: Date
    let revision: Int64

    var value: PropertyListValue { ["date": .date(date), "revision": .integer(revision)] }
  }

  private let etcd: EtcdContainer
  private let now: Date

  init(_ etcd: EtcdContainer, now: Date = Date()) {
    self.etcd = etcd
    self.now = now
  }

  private var key: [UInt8] { etcd.start + Array("sweeps".utf8) }

  /// - Returns: Descriptions of the removed keys.
  func sweep() throws -> [String] {
    guard let old = try note() else { return [] }
    var removed: [String] = []
    for kind in NameKind.users + NameKind.owns {
      switch kind.primitive {
      case .presence, .consumer: removed += try sweepPresences(kind, before: old)
      case .queue: removed += try sweepSenders(kind, before: old)
      case .value, .notification, .log: continue
      }
    }
    return removed
  }

  /// Notes this sweep, and returns the revision that is older than the term; nil if none is known.
  private func note() throws -> Int64? {
    let call = etcd.call()
    let found = try call.read(.key(key))
    let all = found.items.first.map { Self.marks($0.value) } ?? []
    let old = all.last { now.timeIntervalSince($0.date) >= Self.term }
    let isDue = all.last.map { abs(now.timeIntervalSince($0.date)) >= Self.interval } ?? true
    if isDue {
      let kept = all.filter { $0.revision >= old?.revision ?? 0 }
      let marks = kept + [Mark(date: now, revision: found.revision)]
      _ = try call.repeating(
        EtcdTransaction(
          if: [.exists(etcd.formatKey)] + .unchanged([(key, found.items.first)]),
          then: [
            .put(key: key, value: try PropertyListValue.array(marks.map(\.value)).binaryBytes())
          ]))
    }
    return old?.revision
  }

  private static func marks(_ bytes: [UInt8]) -> [Mark] {
    // If another program wrote it, this sweep replaces it.
    (PropertyListValue(found: bytes)?.arrayValue ?? []).compactMap { mark in
      guard let date = mark["date"]?.dateValue, let revision = mark["revision"]?.int64Value
      else { return nil }
      return Mark(date: date, revision: revision)
    }
  }

  /// Entering puts `last`, so as long as that is unchanged no process is present that was not before.
  private func sweepPresences(_ kind: NameKind, before old: Int64) throws -> [String] {
    let start = etcd.key(kind.letter, isOwn: kind.isOwn)
    let names = Dictionary(grouping: try etcd.call().read(.prefix(start), keysOnly: true).items) {
      $0.key.dropFirst(start.count).prefix { $0 != UInt8(ascii: "/") }
    }
    return try names.values.reduce(into: []) { removed, items in
      let traces = items.filter { item in
        ["/last", "/h"].contains { item.key.suffix($0.utf8.count).elementsEqual($0.utf8) }
      }
      // A process that is present has another key.
      guard traces.count == items.count else { return }
      removed += try remove(traces, before: old)
    }
  }

  private func sweepSenders(_ kind: NameKind, before old: Int64) throws -> [String] {
    try etcd.call().identifiers(of: kind).reduce(into: []) { removed, name in
      let senders = etcd.key(kind, name, part: "/" + QueueKeyPart.senders.text())
      for item in try etcd.call().read(.prefix(senders), keysOnly: true).items {
        removed += try remove([item], before: old)
      }
    }
  }

  /// Removes keys together, if none of them is newer.
  private func remove(_ items: [KeyValue], before old: Int64) throws -> [String] {
    guard items.allSatisfy({ $0.modified <= old }) else { return [] }
    let outcome = try etcd.call().repeating(
      EtcdTransaction(
        if: items.map { .modified($0.key, at: $0.modified) },
        then: items.map { .delete(.key($0.key)) }))
    return outcome.succeeded ? items.map { etcd.location(of: $0.key) } : []
  }
}
