import WormholeSystem

/// The other consumers of a queue: which directories in `taken/` have no live owner.
///
/// The directory of a worker is named after its registration in the queue's presence; any other
/// belongs to the consumer that has, or had, the queue alone. A worker that has been stopped for a
/// grace loses its directories like a dead one, and finds them gone when it continues.
///
/// A worker without room for a registration locks its directory instead, which was the directory of
/// a consumer that is gone, and declares itself in the name like the holder of a lease. It locks
/// the directory before it gives it that name; so an unlocked directory with such a name is
/// abandoned for good.
struct OtherConsumers {
  /// How often a consumer looks whether another is stopped, which causes no event.
  private static let lookInterval: Duration = .seconds(1)
  static let prefix = "worker-"

  private let queue: Queue
  /// The exclusive registration of this process, at the beginning.
  private let role: String?
  /// When to look again; nil without other consumers.
  private(set) var due: ContinuousClock.Instant? = .now
  private var suspendedSince: [String: ContinuousClock.Instant] = [:]
  private var observed: [LeaseDeclaration: Observed] = [:]

  init(of queue: Queue, role: String?) {
    self.queue = queue
    self.role = role
  }

  /// - Returns: nil for the directory of a registered consumer.
  static func declaration(_ directory: String) -> LeaseDeclaration? {
    LeaseDeclaration(FileName(id(directory)))
  }

  private static func id(_ directory: String) -> String {
    String(directory.dropFirst(prefix.count).prefix { $0 != "." })
  }

  static func directory(of registration: PresenceRegistration) -> String {
    prefix + registration.id
  }

  static func isWorker(_ directory: String) -> Bool { directory.hasPrefix(prefix) }

  /// Makes the next look immediate, because a consumer came, left or died.
  mutating func noteChange() { due = .now }

  /// Returns the directories whose consumers are gone; none if it is not time to look.
  ///
  /// - Parameter own: this consumer's directory; directories that it took over have longer names.
  /// - Complexity: one listing, and a look at the registration of each other consumer.
  mutating func abandoned(at place: QueueDirectory, own: String) throws -> [String] {
    guard due.hasPassed else { return [] }
    let others = try place.consumers().filter { $0 != own && !$0.hasPrefix(own + ".") }.sorted()
    var suspended: [String: ContinuousClock.Instant] = [:]
    let abandoned = try others.filter { directory in
      if let declaration = Self.declaration(directory) {
        return try isGone(declaration, at: place)
      }
      guard let owner = try owner(of: directory) else { return true }
      guard owner.state == .suspended else { return false }
      let since = suspendedSince[owner.id] ?? .now
      suspended[owner.id] = since
      return try ContinuousClock.now - since >= LeaseRequest.grace
        && queue.role.place.endWork(of: owner, until: .now + LeaseRequest.grace)
    }
    suspendedSince = suspended
    let pause = suspended.isEmpty ? Self.lookInterval : LeaseRequest.grace
    due = abandoned.count < others.count ? .now + pause : nil
    return abandoned
  }

  /// Returns whether a worker without a registration has ended, or has been stopped for a grace.
  private mutating func isGone(
    _ declaration: LeaseDeclaration, at place: QueueDirectory
  ) throws(Errno) -> Bool {
    let path = QueueDirectory.takenPath(Self.prefix + declaration.name)
    guard let file = try ifPresent(place.openFile(path, [.readOnly, .directory])),
      try !file.tryLock(.shared)
    else { return true }
    let status = try file.status()
    return try observed[declaration, default: Observed()]
      .overdue(among: [declaration], now: .now) { _ throws(Errno) in status } != nil
  }

  /// Returns the batches that other consumers have taken; some may have ended.
  ///
  /// - Complexity: a listing for each of their directories.
  func taken(at place: QueueDirectory, own: String) throws -> [EntryFile] {
    let ownPath = QueueDirectory.takenPath(own)
    var taken: Set<EntryFile> = []
    _ = try place.search(pending: false, isAlone: true) { part -> Void? in
      guard part != ownPath, !part.hasPrefix(ownPath + ".") else { return nil }
      taken.formUnion(try place.batches(part) ?? [])
      return nil
    }
    return Array(taken)
  }

  private func owner(of directory: String) throws -> PresenceMember? {
    let owner = try Self.owner(of: directory, in: queue)
    return owner?.id == role ? nil : owner
  }

  /// - Returns: nil if it is no longer present.
  static func owner(of directory: String, in queue: Queue) throws -> PresenceMember? {
    let id =
      isWorker(directory) ? id(directory) : try queue.role.place.roleID()
    return try id.flatMap { try queue.role.place.living($0) }
  }
}
