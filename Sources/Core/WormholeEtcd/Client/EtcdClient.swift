import WormholeSystem

/// A client of etcd's v3 gateway: reads, transactions, leases and watches.
///
/// Each call blocks its thread, at most until its deadline, and goes to the member that answered
/// last or to the next one. Thread-safe; keeps connections for further calls.
package final class EtcdClient: Sendable {
  let cluster: EtcdCluster
  let watches: EtcdWatches

  package init(_ configuration: EtcdConfiguration) {
    cluster = EtcdCluster(configuration)
    let watches = EtcdWatches(cluster)
    self.watches = watches
    cluster.onReplacement { [weak watches] _ in watches?.endFormer() }
  }

  deinit { watches.end() }

  /// The content of a range at a revision, or its first keys.
  package struct Content: Hashable, Sendable {
    package let moment: EtcdMoment
    /// In the order of the keys.
    package let items: [KeyValue]
    /// Whether there are more keys; then there is at least one.
    package internal(set) var isIncomplete = false

    package var revision: Int64 { moment.revision }
  }

  /// The number of keys in one answer, unless its request sets it.
  package static let pageSize = 1_000

  /// A request to read a range.
  package struct Part: Hashable, Sendable {
    package let range: KeyRange
    package let keysOnly: Bool

    package init(_ range: KeyRange, keysOnly: Bool = false) {
      self.range = range
      self.keysOnly = keysOnly
    }

    func page(of count: Int = EtcdClient.pageSize) -> EtcdTransaction.Operation {
      .read(range, keysOnly: keysOnly, limit: count)
    }
  }

  /// Reads all keys of a range at one revision; see the form for several ranges.
  package func read(
    _ range: KeyRange, keysOnly: Bool = false, pageSize: Int = EtcdClient.pageSize,
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Content {
    let (moment, items) = try read(
      [Part(range, keysOnly: keysOnly)], pageSize: pageSize, until: deadline)
    return Content(moment: moment, items: items[0])
  }

  /// Reads all keys of ranges at one revision: the first pages in one request, others in one each.
  ///
  /// The newest revision may be compacted away between two pages. Then it reads all of them again,
  /// at the newest revision by then.
  ///
  /// - Parameter pageSize: How many keys one answer has.
  /// - Returns: The moment, and the keys of each range.
  /// - Throws: `.compacted` if the newest revision was compacted each time until the deadline;
  ///   otherwise `.unreachable`, and the cluster's refusals.
  package func read(
    _ parts: [Part], pageSize: Int = EtcdClient.pageSize, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> (moment: EtcdMoment, items: [[KeyValue]]) {
    while true {
      do throws(EtcdError) {
        var first: EtcdMoment?
        var pages: [Content?] = Array(repeating: nil, count: parts.count)
        if parts.count > 1 {
          pages = try firstPages(of: parts, pageSize: pageSize, until: deadline) ?? pages
          first = pages[0]?.moment
        }
        var items: [[KeyValue]] = []
        for (part, page) in zip(parts, pages) {
          items.append(
            try read(part, after: page, at: &first, pageSize: pageSize, until: deadline))
        }
        return (first ?? cluster.moment, items)
      } catch {
        guard error.code == .compacted, .now < deadline else { throw error }
      }
    }
  }

  /// - Returns: Nil if they are too long for one answer.
  private func firstPages(
    of parts: [Part], pageSize: Int, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> [Content]? {
    do throws(EtcdError) {
      let outcome = try commit(
        EtcdTransaction(if: [], then: parts.map { $0.page(of: pageSize) }), until: deadline)
      return outcome.results.compactMap { result in
        guard case .read(let items, let isIncomplete) = result else { return nil }
        return Content(moment: outcome.moment, items: items, isIncomplete: isIncomplete)
      }
    } catch {
      guard error.code == .tooLarge else { throw error }
      return nil
    }
  }

  /// - Parameter begun: The first page, if it has been read already.
  private func read(
    _ part: Part, after begun: Content?, at first: inout EtcdMoment?, pageSize: Int,
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> [KeyValue] {
    var rest = part.range
    var items = begun?.items ?? []
    if let begun {
      guard begun.isIncomplete, let last = items.last else { return items }
      rest = rest.after(last.key)
    }
    while true {
      let page = try page(
        rest, keysOnly: part.keysOnly, at: first?.revision, limit: pageSize, until: deadline)
      items += page.items
      first = first ?? page.moment
      guard first?.history == page.moment.history else { throw .replaced }
      guard page.isIncomplete, let last = page.items.last else { return items }
      rest = rest.after(last.key)
    }
  }

  /// Reads the first keys of a range in one request; if the answer would be too long, in further
  /// ones, each for fewer keys.
  ///
  /// - Throws: As `read`, and `.tooLarge` for one key that is too long.
  package func page(
    _ range: KeyRange, keysOnly: Bool = false, at revision: Int64? = nil, limit: Int,
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Content {
    var limit = limit
    while true {
      do throws(EtcdError) {
        return try cluster.call(
          .init(
            "kv/range", .range(range, revision: revision, limit: limit, keysOnly: keysOnly),
            maximumBytes: limit == 1 ? AnswerLimit.key : AnswerLimit.keys), until: deadline
        ) { answer, history in
          guard let newest = answer.header?.revision?.value,
            let items = answer.read.items(of: range, limit: limit, upTo: revision ?? newest)
          else { return nil }
          return Content(
            moment: .init(history: history, revision: newest), items: items,
            isIncomplete: answer.more ?? false)
        }
      } catch {
        guard error.code == .tooLarge, limit > 1 else { throw error }
        limit = max(1, limit / 8)
      }
    }
  }

  /// Returns a key; nil if it does not exist.
  package func item(
    _ key: [UInt8], until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> KeyValue? {
    try page(.key(key), limit: 1, until: deadline).items.first
  }

  /// Returns the first change of a key from a revision on, and waits for one.
  ///
  /// - Throws: `.compacted` if the history begins later; `.unreachable` once the deadline has passed.
  package func firstChange(
    of key: [UInt8], from revision: Int64, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> EtcdEvent {
    // Then it is not of this history, whose watch would be silent.
    guard revision <= cluster.moment.revision + 1 else { throw .replaced }
    let found = Awaited<Result<EtcdEvent, EtcdError>>()
    let watch = watch(.key(key), from: revision) { news in
      switch news {
      case .events(let events):
        if let first = events.first, !found.isSettled { found.settle(.success(first)) }
      case .ended(let error): found.settle(.failure(error))
      case .resumed: return
      }
    }
    defer { watch.cancel() }
    guard let outcome = found.wait(until: deadline) else {
      throw EtcdError(.unreachable, "no member reported the history of the key in time")
    }
    return try outcome.get()
  }

  /// The history's number; see `EtcdMoment`.
  package var history: Int { cluster.moment.history }

  /// Calls a closure each time the history was replaced, on a queue where it may block.
  package func onReplacement(_ handler: @escaping @Sendable (EtcdReplacement) -> Void) {
    cluster.onReplacement(handler)
  }

  /// The number of the cluster; nil before its first answer.
  package var clusterID: String? { cluster.clusterID }

  /// Makes a change under conditions. Sent at most once, unless it only reads.
  ///
  /// - Throws: `.outcomeUnknown` if it was sent and its answer lost; otherwise nothing was changed:
  ///   `.unreachable`, `.leaseGone`, `.noSpace`, `.tooLarge`, `.permissionDenied`, ….
  package func commit(
    _ transaction: EtcdTransaction, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> EtcdTransaction.Outcome {
    let isRead = transaction.operations.allSatisfy(\.isRead)
    return try cluster.call(
      .init(
        "kv/txn", WireText(transaction), maximumBytes: transaction.maximumAnswerBytes,
        effect: isRead ? .repeatable : .once), until: deadline
    ) { answer, history in answer.outcome(of: transaction, in: history) }
  }

  /// Puts a key whose content never changes, without a condition.
  ///
  /// A late copy of it overwrites nothing, but the key may come back after it was deleted. So the
  /// caller deletes keys that nothing refers to. For large contents: the gateway reads the content
  /// of a transaction several times, which takes twice as long as the same put alone.
  ///
  /// - Throws: `.unreachable`, after which it may have been put; the cluster's refusals.
  package func put(
    _ key: [UInt8], _ value: [UInt8], until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    try cluster.call(
      .init("kv/put", .put(key, value), effect: .repeatableWrite), until: deadline
    ) { _, _ in () }
  }

  /// Watches a range from a revision on; see `EtcdWatch`.
  ///
  /// - Parameters:
  ///   - revision: The first revision of interest: the one after the last known.
  ///   - history: The history of the revision; nil for the current one.
  ///   - onNews: Called one at a time, on a thread that it must not block.
  package func watch(
    _ range: KeyRange, from revision: Int64, of history: Int? = nil,
    onNews: @escaping @Sendable (EtcdNews) -> Void
  ) -> EtcdWatch {
    precondition(revision > 0, "revisions begin with 1")
    return watches.add(
      range, from: .init(history: history ?? self.history, revision: revision), onNews)
  }

  /// Watches a range from the moment at which it was read.
  package func watch(
    _ range: KeyRange, after moment: EtcdMoment,
    onNews: @escaping @Sendable (EtcdNews) -> Void
  ) -> EtcdWatch {
    watch(range, from: moment.revision + 1, of: moment.history, onNews: onNews)
  }
}

// Leases.
extension EtcdClient {
  /// Creates a lease. We choose its number, so that a repeated request creates only one lease.
  ///
  /// - Parameter lifetime: In whole seconds; etcd grants no less than about 2.
  /// - Returns: The lease's number.
  package func grantLease(
    lifetime: Duration, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Int64 {
    let number = Int64.random(in: 1...(.max))
    let seconds = max(1, lifetime.components.seconds)
    do throws(EtcdError) {
      try cluster.call(
        .init("lease/grant", ["ID": .number(number), "TTL": .number(seconds)]), until: deadline
      ) { answer, _ in answer.lease?.value == number ? () : nil }
    } catch {
      // Our own lease, from an earlier try whose answer was lost.
      guard error.code == .refused, error.reason.contains("already exists") else { throw error }
    }
    return number
  }

  /// - Throws: `.leaseGone` if it has ended.
  package func keepLeaseAlive(
    _ lease: Int64, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    let isAlive = try cluster.call(
      .init("lease/keepalive", ["ID": .number(lease)]), until: deadline
    ) { answer, _ in answer.lease?.value == lease ? answer.timeToLive?.value ?? 0 > 0 : nil }
    guard isAlive else { throw EtcdError(.leaseGone, "the lease has ended") }
  }

  /// Ends a lease and deletes its keys. A lease that has already ended is ignored.
  package func revokeLease(
    _ lease: Int64, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    do throws(EtcdError) {
      try cluster.call(.init("lease/revoke", ["ID": .number(lease)]), until: deadline) { _, _ in ()
      }
    } catch {
      guard error.code == .leaseGone else { throw error }
    }
  }

  /// Ends a lease if no key outside a range hangs on it, as far as this user may see: a program
  /// that shares it would lose its keys.
  package func revokeLease(
    _ lease: Int64, ofKeysIn range: KeyRange, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    let answer = try cluster.call(
      .init("lease/timetolive", ["ID": .number(lease), "keys": .yes]), until: deadline
    ) { answer, _ in answer.lease?.value == lease ? answer : nil }
    guard answer.timeToLive?.value ?? 0 >= 0,
      (answer.keys ?? []).allSatisfy({ range.contains(Array($0)) })
    else { return }
    try revokeLease(lease, until: deadline)
  }

  /// Returns the lifetime that a lease was granted; nil if the lease has ended.
  package func lifetime(
    ofLease lease: Int64, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Duration? {
    let answer = try cluster.call(
      .init("lease/timetolive", ["ID": .number(lease)]), until: deadline
    ) { answer, _ in answer.lease?.value == lease ? answer : nil }
    return answer.timeToLive?.value ?? 0 < 0 ? nil : .seconds(answer.grantedTTL?.value ?? 0)
  }
}
