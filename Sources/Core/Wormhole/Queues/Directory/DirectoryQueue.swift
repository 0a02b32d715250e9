import WormholeSystem

/// A queue in its directory; see `QueueDirectory`.
struct DirectoryQueue: QueueStore {
  let queue: Queue

  var path: String { queue.directory.path }

  func outlet(for sender: String, _ limits: Queue.Limits) -> any QueueOutlet {
    BatchOutlet(queue, sender, limits: limits)
  }

  func endWatch() -> any QueueEnds { QueueEndWatch(queue) }

  func source(
    for role: ConsumerRole, _ terms: DeliveryTerms, until deadline: ContinuousClock.Instant?
  ) throws -> any ConsumerSource {
    switch role {
    case .alone(let registration):
      try DirectoryConsumer(
        terms, named: "consumer-" + Nonce.next(),
        beside: OtherConsumers(of: queue, role: registration.id))
    case .worker(let registration, let gate):
      try DirectoryConsumer(
        terms, named: OtherConsumers.directory(of: registration),
        beside: OtherConsumers(of: queue, role: gate.id))
    case .unregistered:
      try DirectoryConsumer(
        terms, named: OtherConsumers.unregisteredDirectory(),
        beside: OtherConsumers(of: queue, role: nil))
    }
  }

  func watchFirstUse(_ signal: @escaping @Sendable () -> Void) throws -> (any Cancelling)? {
    guard try queue.open() == nil else { return nil }
    // Looked again after the watch, so that nothing comes between the two.
    let watch = try queue.directory.watch(signal)
    return try queue.open() == nil ? watch : nil
  }

  func hasEntries() throws -> Bool {
    guard let place = try queue.open() else { return false }
    return try place.search { try place.batches($0)?.isEmpty == false ? true : nil } ?? false
  }

  func expire(later: UInt64) throws -> [String] {
    guard let place = try queue.open() else { return [] }
    return try place.expire(now: queue.clock() + later).map { path + "/" + $0 }
  }

  func sweep() throws { try queue.open()?.sweep() }
}
