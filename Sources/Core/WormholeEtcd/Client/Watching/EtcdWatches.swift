import Synchronization
import WormholeSystem

/// The connection of a client's watches, and the queue on which it is made and its member checked.
///
/// Its request never ends: watches are added and cancelled on the existing connection.
final class EtcdWatches: Sendable {
  private struct State {
    var table = WatchTable()
    var handlers: [Int: @Sendable (EtcdNews) -> Void] = [:]
    var nextNumber = 1
    var hasEnded = false

    var stream: HTTPStream?
    var endpoint = ""
    var token: String?
    /// The number of the current stream, or of the attempt to make it; earlier ones do not count.
    /// As long as there are watches there is one of the two.
    var generation = 0
    /// The known history when the stream began.
    var moment = EtcdMoment.none
    /// How often in a row connecting failed.
    var failures = 0
    /// Since when no attempt has succeeded and some were refused.
    var refused: ContinuousClock.Instant?

    var lostConnections = 0
    var madeConnections = 0
    var pulses = 0

    /// Gives the stream up, or the attempt; its news does not count from now on.
    mutating func takeStream() -> HTTPStream? {
      generation += 1
      return stream.take()
    }

    /// Gives it up if it has no watch.
    mutating func takeIdleStream() -> HTTPStream? { table.entries.isEmpty ? takeStream() : nil }
  }

  private let cluster: EtcdCluster
  private let state = Mutex(State())
  private let queue = Blocking.queue()

  init(_ cluster: EtcdCluster) { self.cluster = cluster }

  func add(
    _ range: KeyRange, from first: EtcdMoment, _ onNews: @escaping @Sendable (EtcdNews) -> Void
  ) -> EtcdWatch {
    let number = state.withLock { state in
      let number = state.nextNumber
      let isFirst = state.table.entries.isEmpty
      state.nextNumber += 1
      state.handlers[number] = onNews
      state.table.add(number, range, from: first)
      state.stream?.send(state.table.ask(for: number))
      if isFirst { connectLater(&state) }
      return number
    }
    if first.history != cluster.moment.history { endFormer() }
    return EtcdWatch(number: number, watches: self)
  }

  /// The member that serves the watches; nil without a connection.
  var endpoint: String? { state.withLock { $0.stream == nil ? nil : $0.endpoint } }
  var count: Int { state.withLock { $0.table.entries.count } }
  var lostConnections: Int { state.withLock { $0.lostConnections } }
  var madeConnections: Int { state.withLock { $0.madeConnections } }
  var pulses: Int { state.withLock { $0.pulses } }

  func remove(_ number: Int) {
    let idle = state.withLock { state -> HTTPStream? in
      guard state.handlers.removeValue(forKey: number) != nil else { return nil }
      state.table.remove(number)
      state.stream?.send(WatchTable.refrain(from: number))
      return state.takeIdleStream()
    }
    idle?.cancel()
  }

  /// Ends the watches of former histories, in which their revisions count, and the connection.
  func endFormer() {
    let history = cluster.moment.history
    let (stream, handlers) = state.withLock { state in
      let former = state.table.entries.filter { $0.value.history < history }.keys
      let handlers = former.compactMap { state.handlers.removeValue(forKey: $0) }
      for number in former { state.table.remove(number) }
      state.table.lose()
      let stream = state.takeStream()
      connectLater(&state)
      return (stream, handlers)
    }
    stream?.cancel()
    for handler in handlers { handler(.ended(.replaced)) }
  }

  func end() {
    let stream = state.withLock { state in
      state.hasEnded = true
      state.handlers = [:]
      return state.takeStream()
    }
    stream?.cancel()
  }

  /// Begins an attempt, if there are watches; it takes the place of a former one.
  private func connectLater(_ state: inout State, after pause: Duration = .zero) {
    guard !state.hasEnded, !state.table.entries.isEmpty else { return }
    state.generation += 1
    let generation = state.generation
    queue.after(pause) { [weak self] in self?.connect(generation) }
  }

  private func connect(_ generation: Int) {
    let endpoint = cluster.preferred
    let isWanted = state.withLock { state in
      guard state.generation == generation else { return false }
      state.endpoint = endpoint
      return true
    }
    guard isWanted else { return }
    do throws(MemberFailure) {
      let (request, token) = try cluster.stream("watch", at: endpoint)
      try state.withLock { state throws(MemberFailure) in
        try begin(&state, generation, token: token, request)
      }
    } catch {
      lose(generation, refusal: error.refusal(by: endpoint))
    }
  }

  // Under the lock, so that a watch that is added meanwhile is in its request or sent after it.
  private func begin(
    _ state: inout State, _ generation: Int, token: String?, _ request: ([UInt8]) -> HTTPRequest
  ) throws(MemberFailure) {
    // The last watch has been cancelled, or there is a newer attempt.
    guard state.generation == generation else { return }
    state.token = token
    state.moment = cluster.moment
    let content = state.table.begin()
    do throws(HTTPError) {
      state.stream = try HTTPStream(
        request(content),
        maximumLineBytes: min(AnswerLimit.keys, cluster.configuration.maximumAnswerBytes),
        connectLimit: cluster.configuration.patience, isOpen: true,
        onLine: { [self] in take($0, generation) }, onEnd: { [self] in ended($0, generation) })
      state.madeConnections += 1
      probeLater(generation, at: state.endpoint)
    } catch {
      throw .final(
        EtcdError(error.code == .libraryMissing ? .libraryMissing : .refused, error.reason))
    }
  }

  /// The connection failed; it is made again on the next endpoint, after a pause.
  ///
  /// - Parameters:
  ///   - generation: The number of the connection, or of the attempt.
  ///   - refusal: An error that the next attempt will also have. It may be fixed, so the watches
  ///     learn of it, and end, only after a while.
  private func lose(_ generation: Int, refusal: EtcdError? = nil) {
    typealias Lost = (HTTPStream?, [@Sendable (EtcdNews) -> Void])
    let lost = state.withLock { state -> Lost? in
      guard state.generation == generation else { return nil }
      cluster.dislike(state.endpoint)
      state.lostConnections += 1
      state.table.lose()
      let pause = Duration.milliseconds(10) * (1 << min(state.failures, 7))
      state.failures += 1
      let refused = takeRefused(&state, by: refusal)
      let stream = state.takeStream()
      connectLater(&state, after: min(pause, .seconds(1)))
      return (stream, refused)
    }
    guard let (stream, refused) = lost else { return }
    stream?.cancel()
    if let refusal { for handler in refused { handler(.ended(refusal)) } }
  }

  private func takeRefused(
    _ state: inout State, by refusal: EtcdError?
  ) -> [@Sendable (EtcdNews) -> Void] {
    guard refusal != nil else { return [] }
    let since = state.refused ?? .now
    state.refused = since
    guard .now - since >= cluster.configuration.patience else { return [] }
    for number in state.handlers.keys { state.table.remove(number) }
    return Array(exchange(&state.handlers, with: [:]).values)
  }

  // On the streams' thread, one line at a time.
  private func take(_ line: [UInt8], _ generation: Int) {
    typealias Report = (news: EtcdNews, handler: @Sendable (EtcdNews) -> Void)
    var tokenExpired: Bool?
    var token: String?
    var idle: HTTPStream?
    let reports = state.withLock { state -> [Report] in
      guard state.generation == generation else { return [] }
      let (endpoint, moment) = (state.endpoint, state.moment)
      let actions = state.table.take(line) { header in
        do throws(EtcdError) {
          _ = try cluster.take(header, from: endpoint, asked: moment, isOfNewest: false)
          return true
        } catch {
          return false
        }
      }
      token = state.token
      var reports: [Report] = []
      for action in actions {
        switch action {
        case .report(let number, let news):
          guard let handler = state.handlers[number] else { continue }
          if case .ended = news { state.handlers[number] = nil }
          reports.append((news, handler))
        case .reconnect(let expired): tokenExpired = expired || tokenExpired ?? false
        }
      }
      if tokenExpired == nil { (state.failures, state.refused) = (0, nil) }
      idle = state.takeIdleStream()
      return reports
    }
    idle?.cancel()
    for report in reports { report.handler(report.news) }
    guard let tokenExpired else { return }
    if tokenExpired, let token { cluster.forget(token) }
    lose(generation)
  }

  private func ended(_ end: HTTPStream.End, _ generation: Int) {
    let (endpoint, token) = state.withLock { ($0.endpoint, $0.token) }
    let failure: MemberFailure
    switch end {
    case .failure(let error): failure = MemberFailure(error)
    case .success(let answer):
      if answer.status == 401, let token { cluster.forget(token) }
      failure = MemberFailure(answer)
    }
    lose(generation, refusal: failure.refusal(by: endpoint))
  }

  /// Checks the member an interval after its last answer: a process that asks it anyway, if only to
  /// renew its session, needs no probe.
  private func probeLater(_ generation: Int, at endpoint: String) {
    let pause = ContinuousClock.now.duration(to: nextProbe(of: endpoint) ?? .now + interval)
    queue.after(max(.zero, pause)) { [weak self] in self?.probe(generation) }
  }

  private var interval: Duration { cluster.configuration.probeInterval }

  private func nextProbe(of endpoint: String) -> ContinuousClock.Instant? {
    cluster.answered(endpoint).map { $0 + interval }
  }

  /// Checks the member that serves the stream, which also shows whether the history was replaced,
  /// and then the stream: the question goes another way, on which packets may still pass. If the
  /// member does not answer, the stream moves to another.
  private func probe(_ generation: Int) {
    let serving = state.withLock { state -> (String, [UInt8])? in
      guard state.generation == generation, state.stream != nil,
        let watched = state.table.entries.first
      else { return nil }
      return (state.endpoint, watched.value.range.first)
    }
    guard let (endpoint, key) = serving else { return }
    if nextProbe(of: endpoint).map({ $0 <= .now }) ?? true {
      do throws(EtcdError) {
        try cluster.ask(
          endpoint, question: .init("kv/range", .range(.key(key), countOnly: true)),
          until: .now + cluster.configuration.probePatience
        ) { _, _ in () }
      } catch {
        // A refusal is an answer, too.
        if error.code == .unreachable { return lose(generation) }
      }
    }
    state.withLock { state in
      guard state.generation == generation else { return }
      state.stream?.send(state.table.pulse())
      state.pulses += 1
    }
    checkStreamLater(generation)
  }

  private func checkStreamLater(_ generation: Int) {
    let due = ContinuousClock.now + interval / 2
    queue.after(interval / 2) { [weak self] in self?.checkStream(generation, due: due) }
  }

  /// Moves the stream if a watch, or the sign of life, was not confirmed for a while.
  private func checkStream(_ generation: Int, due: ContinuousClock.Instant) {
    // This process was stopped, or is too busy to read: what has arrived meanwhile comes first.
    if .now - due >= interval / 4 { return checkStreamLater(generation) }
    let found = state.withLock { state in
      state.generation == generation
        ? (state.endpoint, state.table.isStalled(after: interval / 2)) : nil
    }
    guard let (endpoint, isStalled) = found else { return }
    if isStalled { lose(generation) } else { probeLater(generation, at: endpoint) }
  }
}
