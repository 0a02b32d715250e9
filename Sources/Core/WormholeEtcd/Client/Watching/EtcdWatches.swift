import Synchronization
import WormholeSystem

/// The connection of a client's watches, and the thread that makes it and checks the member that
/// serves it.
///
/// Its request never ends: watches are added and cancelled on the existing connection.
final class EtcdWatches: Sendable {
  private struct State {
    var table = WatchTable()
    var handlers: [Int: @Sendable (EtcdNews) -> Void] = [:]
    var nextNumber = 1
    var hasThread = false
    var hasEnded = false

    var stream: HTTPStream?
    var endpoint = ""
    var token: String?
    /// The number of the current stream; earlier ones do not count.
    var generation = 0
    /// The known history when the stream began.
    var moment = EtcdMoment(history: 0, revision: 0)
    /// When to connect; nil if it is connected or there is no watch.
    var start: ContinuousClock.Instant?
    /// The watch that had no confirmation at the last probe.
    var stalled: Int?
    /// How often in a row connecting failed.
    var failures = 0
    /// Since when no attempt has succeeded and some were refused.
    var refused: ContinuousClock.Instant?

    var lostConnections = 0
    var madeConnections = 0
  }

  private let cluster: EtcdCluster
  private let state = Mutex(State())
  private let wakeUp = Mutex<SharedDescriptor?>(nil)

  init(_ cluster: EtcdCluster) { self.cluster = cluster }

  func add(
    _ range: KeyRange, from first: EtcdMoment, _ onNews: @escaping @Sendable (EtcdNews) -> Void
  ) throws(EtcdError) -> EtcdWatch {
    try startThreadOnce()
    let (number, mustConnect) = state.withLock { state in
      let number = state.nextNumber
      state.nextNumber += 1
      state.handlers[number] = onNews
      state.table.add(number, range, from: first)
      if let stream = state.stream {
        stream.send(state.table.ask(for: number))
      } else if state.start == nil {
        state.start = .now
      }
      return (number, state.stream == nil)
    }
    if mustConnect { wake() }
    if first.history != cluster.moment.history { endFormer() }
    return EtcdWatch(number: number, watches: self)
  }

  var endpoint: String? { state.withLock { $0.stream == nil ? nil : $0.endpoint } }
  var lostConnections: Int { state.withLock { $0.lostConnections } }
  var madeConnections: Int { state.withLock { $0.madeConnections } }

  func remove(_ number: Int) {
    let isLast = state.withLock { state in
      guard state.handlers.removeValue(forKey: number) != nil else { return false }
      state.table.remove(number)
      state.stream?.send(WatchTable.refrain(from: number))
      return state.handlers.isEmpty
    }
    if isLast { wake() }
  }

  /// Ends the watches of former histories, in which their revisions count, and the connection.
  func endFormer() {
    let history = cluster.moment.history
    let (stream, handlers) = state.withLock { state in
      let former = state.table.entries.filter { $0.value.history < history }.keys
      let handlers = former.compactMap { state.handlers.removeValue(forKey: $0) }
      for number in former { state.table.remove(number) }
      state.table.lose()
      state.generation += 1
      if state.hasThread { state.start = .now }
      defer { state.stream = nil }
      return (state.stream, handlers)
    }
    stream?.cancel()
    wake()
    for handler in handlers { handler(.ended(.replaced)) }
  }

  /// Ends all watches and the thread.
  func end() {
    state.withLock { state in
      state.hasEnded = true
      state.handlers = [:]
    }
    wake()
  }

  private func startThreadOnce() throws(EtcdError) {
    guard !state.withLock({ $0.hasThread }) else { return }
    do throws(Errno) {
      let counter = SharedDescriptor(try FileDescriptor.wakeUpCounter())
      // If two threads get here at once, one has started it.
      let isFirst = state.withLock { state in
        defer { state.hasThread = true }
        return !state.hasThread
      }
      guard isFirst else { return }
      wakeUp.withLock { $0 = counter }
      try startThread(name: "etcd watches") { [self] in run(counter) }
    } catch {
      state.withLock { $0.hasThread = false }
      throw EtcdError(.refused, "the process cannot watch: \(error)")
    }
  }

  private func wake() {
    guard let counter = wakeUp.withLock({ $0 }) else { return }
    do throws(Errno) {
      try counter.descriptor.raiseCounter()
    } catch {
      // The counter is full, so the thread has been woken.
      return
    }
  }

  private func run(_ counter: SharedDescriptor) {
    var nextProbe = ContinuousClock.now + cluster.configuration.probeInterval
    while true {
      let (isDue, idle, hasEnded) = state.withLock { takeDue(&$0) }
      idle?.cancel()
      if hasEnded { return }
      if isDue { connect() }
      if ContinuousClock.now >= nextProbe {
        probe()
        nextProbe = .now + cluster.configuration.probeInterval
      }
      do throws(Errno) {
        _ = try waitReadable([counter.descriptor.rawValue], until: nextDeadline(nextProbe))
        try counter.descriptor.lowerCounter()
      } catch {
        // No memory for the call; the deadlines are looked at again.
        pauseThread(.milliseconds(100))
      }
    }
  }

  private func nextDeadline(_ nextProbe: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    state.withLock { state in
      [state.start, state.stream == nil ? nil : nextProbe].compactMap { $0 }.min()
    }
  }

  /// Returns whether to connect now, the stream to cancel, and whether the watches have ended.
  private func takeDue(_ state: inout State) -> (Bool, HTTPStream?, Bool) {
    guard state.hasEnded || state.table.entries.isEmpty else {
      return (state.start.map { $0 <= .now } ?? false, nil, false)
    }
    state.generation += 1
    state.start = nil
    defer { state.stream = nil }
    return (false, state.stream, state.hasEnded)
  }

  private func connect() {
    let endpoint = cluster.preferred
    state.withLock { $0.endpoint = endpoint }
    do throws(EtcdCluster.StreamFailure) {
      let (request, token) = try cluster.stream("watch", at: endpoint)
      let made = state.withLock { state in
        Result { () throws(EtcdError) in
          try self.begin(&state, token: token, request)
        }
      }
      do throws(EtcdError) {
        try made.get()
      } catch {
        throw EtcdCluster.StreamFailure(error: error, isFinal: true)
      }
    } catch {
      lose(nil, refusal: error.isFinal ? error.error : nil)
    }
  }

  // Under the lock, so that a watch that is added meanwhile is in its request or sent after it.
  private func begin(
    _ state: inout State, token: String?, _ request: ([UInt8]) -> HTTPRequest
  ) throws(EtcdError) {
    state.start = nil
    state.generation += 1
    state.token = token
    state.stalled = nil
    state.moment = cluster.moment
    let content = state.table.begin()
    // The last one has been cancelled.
    guard !content.isEmpty else { return }
    let generation = state.generation
    do throws(HTTPError) {
      state.stream = try HTTPStream(
        request(content),
        maximumLineBytes: min(AnswerLimit.keys, cluster.configuration.maximumAnswerBytes),
        connectLimit: cluster.configuration.patience, isOpen: true,
        onLine: { [self] in take($0, generation) }, onEnd: { [self] in ended($0, generation) })
      state.madeConnections += 1
    } catch {
      throw EtcdError(error.code == .libraryMissing ? .libraryMissing : .refused, error.reason)
    }
  }

  /// The connection failed; it is made again on the next endpoint, after a pause.
  ///
  /// - Parameters:
  ///   - generation: The generation of the connection; nil if there is none.
  ///   - refusal: An error that the next attempt will also have. It may be fixed, so the watches
  ///     learn of it, and end, only after a while.
  private func lose(_ generation: Int?, refusal: EtcdError? = nil) {
    typealias Lost = (HTTPStream?, String, [@Sendable (EtcdNews) -> Void])
    let lost = state.withLock { state -> Lost? in
      guard generation.map({ state.generation == $0 }) ?? true else { return nil }
      state.lostConnections += 1
      state.table.lose()
      let pause = Duration.milliseconds(10) * (1 << min(state.failures, 7))
      state.failures += 1
      state.generation += 1
      state.start = .now + min(pause, .seconds(1))
      defer { state.stream = nil }
      return (state.stream, state.endpoint, takeRefused(&state, by: refusal))
    }
    guard let (stream, endpoint, refused) = lost else { return }
    stream?.cancel()
    cluster.dislike(endpoint)
    if let refusal { for handler in refused { handler(.ended(refusal)) } }
    wake()
  }

  private func takeRefused(
    _ state: inout State, by refusal: EtcdError?
  ) -> [@Sendable (EtcdNews) -> Void] {
    guard refusal != nil else { return [] }
    let since = state.refused ?? .now
    state.refused = since
    guard .now - since >= cluster.configuration.patience else { return [] }
    for number in state.handlers.keys { state.table.remove(number) }
    defer { state.handlers = [:] }
    return Array(state.handlers.values)
  }

  // On the streams' thread, one line at a time.
  private func take(_ line: [UInt8], _ generation: Int) {
    typealias Report = (news: EtcdNews, handler: @Sendable (EtcdNews) -> Void)
    var tokenExpired: Bool?
    var token: String?
    let reports = state.withLock { state -> [Report] in
      guard state.generation == generation else { return [] }
      let (endpoint, moment) = (state.endpoint, state.moment)
      let actions = state.table.take(line) { header in
        let taken = cluster.take(header, from: endpoint, asked: moment, isOfNewest: false)
        if case .success = taken { return true } else { return false }
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
      return reports
    }
    for report in reports { report.handler(report.news) }
    guard let tokenExpired else { return }
    if tokenExpired, let token { cluster.forget(token) }
    lose(generation)
  }

  private func ended(_ end: HTTPStreamEnd, _ generation: Int) {
    let (endpoint, token) = state.withLock { ($0.endpoint, $0.token) }
    if case .answered(let answer) = end, answer.status == 401, let token { cluster.forget(token) }
    lose(generation, refusal: cluster.refusal(of: end, from: endpoint))
  }

  /// Checks the member that serves the stream, which also shows whether the history was replaced.
  /// If it does not answer, or has not confirmed a watch since then, the stream moves to another.
  private func probe() {
    let serving = state.withLock { state -> (String, Int, [UInt8])? in
      guard state.stream != nil, let watched = state.table.entries.first else { return nil }
      return (state.endpoint, state.generation, watched.value.range.first)
    }
    guard let (endpoint, generation, key) = serving else { return }
    do throws(EtcdError) {
      try cluster.look(at: endpoint, reading: key)
    } catch {
      // A refusal is an answer, too.
      if error.code == .unreachable { return lose(generation) }
    }
    let isStalled = state.withLock { state in
      guard state.generation == generation else { return false }
      defer { state.stalled = state.table.unconfirmed }
      return state.stalled != nil && state.stalled == state.table.unconfirmed
    }
    if isStalled { lose(generation) }
  }
}
