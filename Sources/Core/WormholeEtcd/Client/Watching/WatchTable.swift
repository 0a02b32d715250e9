/// The watches of one connection with the progress of each: determines requests, and evaluates
/// lines of the answer.
struct WatchTable {
  struct Entry {
    let range: KeyRange
    let history: Int
    /// The first revision that was not delivered.
    var next: Int64
    /// The events of partly reported revisions.
    var fragments: [EtcdEvent] = []
    /// Whether a connection has served it.
    var isServed = false
    /// Whether that connection was lost.
    var isLost = false
    /// Whether it was refused once.
    var isRefused = false
  }

  /// What to do after a line.
  enum Action {
    case report(Int, EtcdNews)
    /// The connection is no longer usable.
    case reconnect(tokenExpired: Bool)
  }

  private(set) var entries: [Int: Entry] = [:]
  /// The requested watches that the member has not confirmed yet, in this order. A watch has the
  /// same number there as here.
  private var asked: ArraySlice<Int> = []
  /// Since when the next confirmation is awaited; nil if all are there.
  private var awaitedSince: ContinuousClock.Instant?
  /// When the last line came.
  private var heard = ContinuousClock.now

  /// Whether the connection has been silent for a time although something is asked, or a watch is not
  /// confirmed although other news comes.
  func isStalled(after time: Duration) -> Bool {
    guard let awaitedSince else { return false }
    return .now - max(awaitedSince, heard) >= time || .now - awaitedSince >= time * 12
  }

  mutating func add(_ number: Int, _ range: KeyRange, from first: EtcdMoment) {
    entries[number] = Entry(range: range, history: first.history, next: first.revision)
  }

  mutating func remove(_ number: Int) { entries[number] = nil }

  /// The connection was lost: its watches learn of it when they continue.
  mutating func lose() {
    for (number, entry) in entries { entries[number]?.isLost = entry.isServed }
    (asked, awaitedSince) = ([], nil)
  }

  /// Returns the request that begins a connection: all watches, each where it stopped.
  mutating func begin() -> [UInt8] {
    (asked, awaitedSince) = ([], nil)
    var content: [UInt8] = []
    #if DEBUG
      if EtcdFault.resumingLate.isActive {
        for (number, entry) in entries where entry.isLost { entries[number]?.next += 1 }
      }
    #endif
    for number in entries.keys.sorted() { content += ask(for: number) }
    return content
  }

  /// Returns the request of an existing connection to serve a watch.
  mutating func ask(for number: Int) -> [UInt8] {
    entries[number]?.fragments = []
    guard let entry = entries[number] else { return [] }
    return create(number, entry.range, from: entry.next)
  }

  private mutating func create(_ number: Int, _ range: KeyRange, from first: Int64) -> [UInt8] {
    asked.append(number)
    awaitedSince = awaitedSince ?? .now
    let creation: WireText = [
      "create_request": [
        "key": .bytes(range.first), "range_end": range.end.map { .bytes($0) },
        "start_revision": .number(first), "watch_id": .number(Int64(number)), "fragment": .yes,
      ]
    ]
    return creation.bytes
  }

  /// Returns the request for a sign of life of the connection itself: a watch of an already watched
  /// key, from a revision that never comes. Its confirmation is the sign. The former one ends.
  mutating func pulse() -> [UInt8] {
    guard let range = entries.values.first?.range else { return [] }
    return Self.refrain(from: Self.pulseNumber)
      + create(Self.pulseNumber, .key(range.first), from: .max)
  }

  private static let pulseNumber = Int.max

  /// Returns the request of a connection to stop serving a watch.
  static func refrain(from number: Int) -> [UInt8] {
    let cancellation: WireText = ["cancel_request": ["watch_id": .number(Int64(number))]]
    return cancellation.bytes
  }

  /// A line: news, or the error that ends the stream.
  private struct Line: Decodable {
    let result: News?
    let error: WireError?
  }

  private struct News: Decodable {
    struct Event: Decodable {
      let type: String?
      let kv: WireKeyValue?
    }

    enum CodingKeys: String, CodingKey {
      case header, created, canceled, fragment, events
      case watchId = "watch_id"
      case cancelReason = "cancel_reason"
      case compactRevision = "compact_revision"
    }

    let header: WireHeader?
    let watchId: WireInteger?
    let created: Bool?
    let canceled: Bool?
    let cancelReason: String?
    let compactRevision: WireRevision?
    let fragment: Bool?
    let events: [Event]?
  }

  /// Takes a line of the connection that began last.
  ///
  /// - Parameter isOurs: Whether the cluster and the history are the watches' own.
  mutating func take(_ line: [UInt8], isOurs: (WireHeader?) -> Bool) -> [Action] {
    heard = .now
    let line = EtcdWire.decode(line, as: Line.self)
    guard let result = line?.result else {
      // An error of the member, or a line that is not etcd's.
      let error = line?.error
      return [.reconnect(tokenExpired: (error?.grpcCode ?? error?.code) == 16)]
    }
    guard isOurs(result.header) else { return [.reconnect(tokenExpired: false)] }
    if result.created ?? false {
      // A watch that is refused at once has no number, but keeps its turn.
      guard let number = asked.popFirst() else { return [.reconnect(tokenExpired: false)] }
      awaitedSince = asked.isEmpty ? nil : .now
      if result.canceled ?? false {
        // etcd 3.4 reads no further requests of the connection after one that it refuses.
        return end(number, result) + [.reconnect(tokenExpired: false)]
      }
      guard let entry = entries[number] else { return [] }
      entries[number]?.isServed = true
      entries[number]?.isRefused = false
      entries[number]?.isLost = false
      return entry.isLost ? [.report(number, .resumed)] : []
    }
    // News of a watch that was cancelled here is ignored.
    guard let number = result.watchId.flatMap({ Int(exactly: $0.value) }), entries[number] != nil
    else { return [] }
    if result.canceled ?? false { return end(number, result) }
    return takeEvents(result.events ?? [], isPart: result.fragment ?? false, of: number)
  }

  private mutating func takeEvents(
    _ events: [News.Event], isPart: Bool, of number: Int
  ) -> [Action] {
    guard var entry = entries[number] else { return [] }
    for event in events {
      guard let keyValue = event.kv?.keyValue, keyValue.modified >= entry.next else { continue }
      entry.fragments.append(
        EtcdEvent(kind: event.type == "DELETE" ? .delete : .put, keyValue: keyValue))
    }
    defer { entries[number] = entry }
    guard !isPart, let last = entry.fragments.map(\.keyValue.modified).max() else { return [] }
    let complete = entry.fragments
    entry.fragments = []
    entry.next = last + 1
    return [.report(number, .events(complete))]
  }

  private mutating func end(_ number: Int, _ result: News) -> [Action] {
    let reason = result.cancelReason ?? ""
    let error: EtcdError
    if let first = result.compactRevision?.value {
      error = EtcdError(
        .compacted, "changes before revision \(first) were given up", revision: first)
    } else if reason.contains("permission denied") {
      // etcd 3.4 also sends this if the token is no longer valid.
      guard entries[number]?.isRefused ?? true else {
        entries[number]?.isRefused = true
        return [.reconnect(tokenExpired: true)]
      }
      error = EtcdError(.permissionDenied, reason)
    } else {
      return [.reconnect(tokenExpired: reason.contains("auth token"))]
    }
    guard entries[number] != nil else { return [] }
    remove(number)
    return [.report(number, .ended(error))]
  }
}
