import WormholeSystem

/// The other consumers of a queue: which directories in `taken/` have no live owner.
///
/// The directory of a worker is named after its registration in the queue's presence. One that begins
/// with `free` has no owner. Any other belongs to the consumer that has, or had, the queue alone. A
/// consumer that has been stopped for a grace loses its directories like a dead one, and finds them
/// gone when it continues.
struct OtherConsumers {
  static let prefix = "worker-"

  /// The state of a directory's owner.
  private enum Owner {
    case gone
    /// Stopped, but not for long enough.
    case stopped
    /// It lives, but nothing shows whether it is stopped.
    case hidden
    case running
  }

  /// The findings of a look.
  struct Findings {
    /// The directories whose owners are gone.
    var abandoned: [String] = []
    /// The registrations of those that are dead.
    var dead: [String] = []
    /// The live owners.
    var living: [PresenceMember] = []
    /// Whether one of them may soon be gone, because it is stopped.
    var hasStopped = false
    /// Whether nothing shows whether one of them is stopped.
    var hasHidden = false
  }

  private let queue: PlainQueue
  /// The exclusive registration of this process, at the beginning.
  private let role: String?
  /// The live registrations that need no look, as long as their processes are not stopped.
  var watched: [String: PresenceMember] = [:]
  private var suspendedSince: [String: ContinuousClock.Instant] = [:]

  init(of queue: PlainQueue, role: String? = nil) {
    self.queue = queue
    self.role = role
  }

  private static func id(_ directory: String) -> String {
    String(directory.dropFirst(prefix.count).prefix { $0 != "." })
  }

  static func directory(of registration: PresenceRegistration) -> String {
    prefix + registration.id
  }

  static func isWorker(_ directory: String) -> Bool { directory.hasPrefix(prefix) }

  /// The directories of others, in the order in which a consumer looks at them.
  struct Ring {
    /// Those of consumers that had the queue alone.
    var alone: [String] = []
    /// Those of workers, beginning after the consumer's own.
    var workers: [String] = []

    /// - Parameter names: the names in `taken/`.
    init(of own: String, among names: [String]) {
      let others = names.filter { !belongs($0, to: own) && !QueueDirectory.isFree($0) }
      let sorted = others.filter(isWorker).sorted()
      alone = others.filter { !isWorker($0) }
      workers = sorted.filter { $0 > own } + sorted.filter { $0 < own }
    }

    var isEmpty: Bool { alone.isEmpty && workers.isEmpty }

    /// Those of the consumers that look at this one.
    var watchers: [String] { alone + workers.suffix(1) }
  }

  /// Whether all those that are watched run. Reads only files of /proc.
  var areRunning: Bool { watched.values.allSatisfy { $0.isStopped == false } }

  /// Looks at each of some directories.
  ///
  /// - Complexity: a look at the registration of each.
  mutating func look(at directories: [String]) throws -> Findings {
    var findings = Findings()
    for directory in directories { _ = try add(directory, to: &findings) }
    return findings
  }

  /// Looks at the directories of consumers that had the queue alone, and at those of the workers that
  /// follow in a ring, up to the first that is seen to run: it looks at those that follow.
  mutating func look(around ring: Ring) throws -> Findings {
    var findings = Findings()
    for directory in ring.alone { _ = try add(directory, to: &findings) }
    for directory in ring.workers where try add(directory, to: &findings) { break }
    return findings
  }

  /// Returns whether a directory is a consumer's own, or one that it took over.
  static func belongs(_ directory: String, to own: String) -> Bool {
    directory == own || directory.hasPrefix(own + ".")
  }

  /// - Returns: whether its owner is seen to run.
  private mutating func add(_ directory: String, to findings: inout Findings) throws -> Bool {
    switch try owner(directory, &findings) {
    case .gone: findings.abandoned.append(directory)
    case .stopped: findings.hasStopped = true
    case .hidden: findings.hasHidden = true
    case .running: return true
    }
    return false
  }

  private mutating func owner(_ directory: String, _ findings: inout Findings) throws -> Owner {
    if QueueDirectory.isFree(directory) { return .gone }
    let known = Self.isWorker(directory) ? watched[Self.id(directory)] : nil
    // A stopped process may have started others that work for it, which only the full look finds.
    if let known, known.isStopped == false, !LeaseFault.takingFromLiving.isActive {
      findings.living.append(known)
      return try state(of: known, isStopped: false)
    }
    guard let owner = try Self.owner(of: directory, in: queue), owner.id != role else {
      if Self.isWorker(directory) { findings.dead.append(Self.id(directory)) }
      return .gone
    }
    if LeaseFault.takingFromLiving.isActive { return .gone }
    findings.living.append(owner)
    return try owner.state == .unknown
      ? .hidden : state(of: owner, isStopped: owner.state == .suspended)
  }

  private mutating func state(of owner: PresenceMember, isStopped: Bool) throws -> Owner {
    let since = isStopped ? suspendedSince[owner.id] ?? .now : nil
    suspendedSince[owner.id] = since
    guard let since else { return .running }
    // A killed one has left only the rest of its work, which needs no grace.
    let isOver = owner.identity.hasEnded || ContinuousClock.now - since >= LeaseRequest.grace
    let isGone =
      try isOver
      && queue.role.place.endWork(of: owner, until: .now + LeaseRequest.grace)
    return isGone ? .gone : .stopped
  }

  /// - Returns: nil if it is no longer present.
  static func owner(of directory: String, in queue: PlainQueue) throws -> PresenceMember? {
    isWorker(directory)
      ? try queue.role.place.living(id(directory)) : try queue.role.place.roleHolder()
  }
}
