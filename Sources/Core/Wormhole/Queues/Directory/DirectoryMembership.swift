import WormholeSystem

/// The membership of one consumer: its directory in `taken/`, for calls at any time.
struct DirectoryMembership: ConsumerMembership {
  let takenPath: String
  let directory: OpenQueue
  let arrivals: Arrivals
  let free: FreeDirectories
  let names: TakenNames
  let ring: ConsumerRing

  func isIdle(countsTaken: Bool) throws -> Bool {
    let place = try directory.openForConsumer()
    // In this order an entry that is just being taken is seen in one of the two.
    let waiting = try place.batches(QueueDirectory.pending) ?? []
    guard waiting.isEmpty, countsTaken else { return waiting.isEmpty }
    guard let taken = try place.batches(takenPath) else { throw directory.queue.replaced() }
    let others = try place.consumers().map { QueueDirectory.takenPath($0) }
    return try taken.isEmpty
      && others.filter { $0.hasPrefix(takenPath + ".") }.allSatisfy {
        try place.batches($0)?.isEmpty ?? true
      }
  }

  func noteLoss() throws {
    func hasOthers() throws -> Bool {
      try directory.queue.open()?.consumers().isEmpty == false
    }
    if try hasOthers() {
      // A program may remove their directories next.
      pauseThread(LeaseRequest.grace)
      if try hasOthers() { return }
    }
    ChangeMonitor.shared.noteRemoval(in: directory.queue.directory.root.path)
  }

  /// The registration shows a successor that this consumer is gone.
  func end(_ registration: PresenceRegistration?, _ cause: ConsumerEnd) {
    ring.cancel()
    if cause != .death { removeDirectory() }
    registration?.end(asDeath: cause == .death)
  }

  /// No other consumer then looks for its owner. If it is not empty, others take it over.
  ///
  /// The only directory stays: a queue without one counts as being removed.
  private func removeDirectory() {
    guard takenPath.hasPrefix(QueueDirectory.takenPath(OtherConsumers.prefix))
    else { return }
    do {
      let place = try directory.openForConsumer(waitsForCopies: false)
      if try names.read(at: place).count > 1 { try place.removeIfEmpty(takenPath) }
    } catch {
      // The queue was removed, or its file system is full or gone: the directory stays, without an owner.
    }
  }

  // These only prompt another look: something was stored or left by others, or a successor has renamed
  // this consumer's directory. An entry that is taken from `pending/` prompts none, nor does a consumer
  // that joins or leaves.
  func watch(_ signal: @escaping @Sendable () -> Void) -> [any Cancelling] {
    let (arrivals, directory, free, ring) = (arrivals, directory, free, ring)
    // The kernel's events report only what happens from here on.
    defer {
      arrivals.noteEverything()
      free.noteEverything()
      ring.noteNames(isEvent: true)
      ring.begin()
    }
    let queue = directory.queue.directory
    var watches: [any Cancelling] = [
      queue.watch(part: QueueDirectory.pending, [.movedTo, .created]) { news in
        directory.note(news)
        arrivals.note(news)
        signal()
      },
      // Only what another one has left appears there, and each that joins or leaves changes it.
      queue.watch(part: QueueDirectory.taken, [.movedTo], pollInterval: .seconds(1)) { news in
        directory.note(news)
        if news.isEverything { ring.noteNames(isEvent: false) }
        if free.note(news) { signal() }
      },
    ]
    // Otherwise it was replaced already, which the next look finds.
    if let own = try? directory.openForConsumer().openFile(takenPath, [.pathOnly, .directory]) {
      watches.append(
        ChangeMonitor.shared.watchOpen(own, [.attributes, .selfMoved, .selfDeleted]) { news in
          ring.noteNames(isEvent: !news.isEverything)
          if !news.own.isSubset(of: .attributes) || news.isEverything { signal() }
        })
    }
    return watches
  }
}
