import Dispatch
import Synchronization
package import Wormhole
import WormholeSystem

/// A container on etcd, for one caller: its keys, its transactions, and this process's session. All
/// uses of one location in a process share its connections and the session.
///
/// ```
/// <prefix>/format            the version of this layout
/// <prefix>/v/<name>          a value; see the page EtcdKeys for this and all others
/// <prefix>/own/v/<name>      the same of the package's own names
/// ```
///
/// Each call blocks its thread, at most until its deadline, so none is made on the cooperative
/// pool, on the monitor's thread or on the watches' thread. Thread-safe.
package struct EtcdContainer: Sendable {
  /// What all uses of one container in a process share, so that it has one session there.
  final class Shared: Sendable {
    let location: EtcdLocation
    let client: EtcdClient
    let prefix: [UInt8]
    let host = Program.hostName
    let sessions = Mutex<Sessions>(Sessions())
    /// Excludes: two threads that create a session at once.
    let making = DispatchSemaphore(value: 1)
    let followers = EtcdFollowers()
    /// The keys that this process observes.
    let mirrors = Mutex<[[UInt8]: Weak<EtcdMirror>]>([:])
    /// The batches that this process has taken from queues.
    let taken = Mutex(LatestKeys())
    let room: EtcdRoom
    /// The outcomes of reads at the opening, for the same requests of its caller.
    let ahead = Mutex<[EtcdTransaction: EtcdTransaction.Outcome]>([:])
    let seen = Mutex(SeenStates())
    /// Whether a change makes it again if it was removed.
    let isOfGroup = Atomic(false)

    init(
      _ location: EtcdLocation, through transport: (any EtcdTransport)?, room: EtcdRoom
    ) throws {
      (self.location, self.room) = (location, room)
      // Without a home directory no token is kept; what needs the directory reports its absence.
      let state = try? location.stateDirectory()
      var configuration = try location.configuration(keepingTokenIn: state)
      if let transport { configuration.transport = transport }
      client = EtcdClient(configuration)
      prefix = Array(location.prefix.utf8)
      client.onReplacement { [weak self] replacement in
        guard let self else { return }
        endFormerSession()
        EtcdContainer(self).note(replacement)
      }
    }
  }

  struct Sessions: Sendable {
    weak var ofProcess: EtcdSession?
    /// Whether there ever was a session.
    var isFollowed = false
  }

  let shared: Shared
  /// The end of calls that have no deadline of their own.
  private let limit: CallLimit
  /// The end of all requests of one call; nil outside of a call.
  private var end: ContinuousClock.Instant?

  package var location: EtcdLocation { shared.location }
  package var client: EtcdClient { shared.client }
  private var prefix: [UInt8] { shared.prefix }

  /// The deadline of a request that begins now.
  var callDeadline: ContinuousClock.Instant { end ?? limit.deadline() }

  /// Returns the same container for one call, whose requests have one deadline.
  ///
  /// - Parameter caller: As in `CallLimit.deadline`.
  func call(within caller: ContinuousClock.Instant? = nil) -> EtcdContainer {
    until(caller.map { limit.deadline(within: $0) } ?? callDeadline)
  }

  /// Returns the same container for requests that end at a deadline.
  func until(_ deadline: ContinuousClock.Instant) -> EtcdContainer {
    var call = self
    call.end = deadline
    return call
  }

  /// The containers of this process: one per location, to share its connections and its session.
  private static let all = Mutex<[EtcdLocation: Weak<Shared>]>([:])

  /// The version of the layout of keys.
  package static let formatVersion: Int64 = 1
  /// What the content begins with, instead of the version, while a container is copied there.
  package static let copyingFormat = "copying "
  /// The largest content of a key. A request has at most 1.5 MiB, with its whole transaction.
  package static let maximumBytes = 1 << 20
  /// The most operations of a transaction, and the most conditions.
  package static let maximumOperations = 128
  /// The longest lifetime of a lease, in seconds (etcd's limit).
  package static let longestLease: Int64 = 9_000_000_000

  init(_ shared: Shared, _ limit: CallLimit = CallLimit()) {
    self.shared = shared
    self.limit = limit
  }

  /// Returns the same container with another limit; without one for what outlives its caller.
  func with(_ limit: CallLimit = CallLimit()) -> EtcdContainer {
    EtcdContainer(shared, limit)
  }

  /// Returns the place of a container without a look at its keys, for one that is about to be
  /// filled: until then no process can open it.
  ///
  /// - Parameter transport: The transport of its requests; nil for the network.
  package static func unopened(
    _ location: EtcdLocation, through transport: (any EtcdTransport)? = nil,
    room: EtcdRoom = EtcdRoom()
  ) throws -> EtcdContainer {
    EtcdContainer(try Shared(location, through: transport, room: room))
  }

  /// Returns the container at a location, after a look at its version.
  ///
  /// - Parameters:
  ///   - creates: Whether it is created if it is missing.
  ///   - limit: The end of this call, and of those through the container.
  ///   - transport: The transport of its requests; nil for the network.
  /// - Returns: Nil if there is none.
  static func open(
    _ location: EtcdLocation, creates: Bool = true, _ limit: CallLimit,
    through transport: (any EtcdTransport)? = nil
  ) throws -> EtcdContainer? {
    let known = all.withLock { $0[location]?.object }
    if let known { return EtcdContainer(known, limit) }
    let new = EtcdContainer(
      try Shared(location, through: transport, room: EtcdRoom()), limit)
    let isThere = try reporting("open the container", path: location.description) {
      try new.call().check(creating: creates)
    }
    guard isThere else { return nil }
    return all.withLock { all in
      all = all.filter { $0.value.object != nil }
      if let first = all[location]?.object { return EtcdContainer(first, limit) }
      all[location] = Weak(object: new.shared)
      return new
    }
  }

  /// Lets the next opening in this process look whether the container exists.
  func forget() {
    Self.all.withLock { if $0[location]?.object === shared { $0[location] = nil } }
  }

  /// Checks the version, and writes it into a new container.
  ///
  /// It reads first: the server identifies itself before anything is written, and a failure leaves
  /// nothing in doubt. The first look of its caller is read with it.
  private func check(creating: Bool) throws -> Bool {
    let key = formatKey
    var found = if let first = limit.first { try item(key, with: first) } else { try item(key) }
    if found == nil {
      guard creating else { return false }
      found = try make().results.first?.items.first
    }
    guard let found else { return true }
    let text = String(decoding: found.value.prefix(64), as: UTF8.self)
    guard !text.hasPrefix(Self.copyingFormat) else {
      throw WormholeError(
        .containerMissing, "open the container", path: location(of: key),
        reason: "a copy to this place is under way, or was not completed",
        remedy: "wait for its end, or copy it there again")
    }
    guard let number = Int64(text) else {
      throw WormholeError(
        .damaged, "open the container", path: location(of: key), reason: "it is not a version",
        remedy: "is the prefix used by another program? Choose another one")
    }
    guard number == Self.formatVersion else {
      throw WormholeError(
        .formatTooNew, "open the container", path: location(of: key),
        reason: "its format version is \(number), and this program knows \(Self.formatVersion)",
        remedy: "use a newer version of this program")
    }
    return true
  }
}

extension EtcdContainer {
  /// Writes the version into a new container; another process may have been faster.
  @discardableResult
  private func make() throws(EtcdError) -> EtcdTransaction.Outcome {
    let version = Array("\(Self.formatVersion)".utf8)
    return try repeating(
      EtcdTransaction(
        if: [.absent(formatKey)], then: [.put(key: formatKey, value: version)],
        otherwise: [.key(formatKey)]))
  }

  /// Makes a change. If the container of a group was removed, it is made again first.
  func changing<Result>(
    _ change: () throws(EtcdError) -> Result
  ) throws(EtcdError) -> Result {
    do throws(EtcdError) {
      return try change()
    } catch {
      guard error.code == .containerGone, shared.isOfGroup.load(ordering: .relaxed) else {
        throw error
      }
      try make()
      return try change()
    }
  }
}

// The first look of a caller.
extension EtcdContainer {
  /// Returns a key, and keeps the first look, which was read with it.
  private func item(_ key: [UInt8], with first: Prefetch) throws(EtcdError) -> KeyValue? {
    let looks = looks(first)
    var outcome = try commit(
      EtcdTransaction(if: [], then: [.read(.key(key))] + looks.flatMap(\.operations)))
    let item = outcome.results.removeFirst().items.first
    if case .value(let name) = first {
      let state = SeenState(item: outcome.results[0].items.first, seen: outcome.moment)
      shared.seen.withLock { $0.know(state, of: self.key(.value, name)) }
    } else {
      for look in looks {
        var part = outcome
        part.results = Array(outcome.results.prefix(look.operations.count))
        outcome.results.removeFirst(look.operations.count)
        shared.ahead.withLock { [part] in $0[look] = part }
      }
    }
    return item
  }
}

// Keys.
extension EtcdContainer {
  /// Returns the key of a name, or of a part of it.
  ///
  /// - Parameter part: The part after the name, with its slash: "/m/4711".
  package func key(_ kind: NameKind, _ identifier: String, part: String = "") -> [UInt8] {
    key(kind.letter, isOwn: kind.isOwn) + EncodedName.key(identifier) + Array(part.utf8)
  }

  /// Returns the beginning of the keys of a letter: "<prefix>/v/".
  package func key(_ letter: String, isOwn: Bool = false) -> [UInt8] {
    prefix + Array((isOwn ? "/own/" : "/").utf8) + Array(letter.utf8) + [UInt8(ascii: "/")]
  }

  package var keys: KeyRange { .prefix(start) }

  /// The beginning of all keys: "<prefix>/".
  var start: [UInt8] { prefix + [UInt8(ascii: "/")] }

  package var formatKey: [UInt8] { start + Array("format".utf8) }

  /// Returns a description of a key for messages: "etcd://h1:2379/cinema v/tickets".
  package func location(of key: [UInt8]) -> String {
    "\(location) \(String(decoding: key.dropFirst(prefix.count + 1), as: UTF8.self))"
  }

  /// Returns the identifiers of a kind that have keys; a key of another form belongs to no name.
  ///
  /// - Complexity: One request for each name, or one for a thousand names that have one key each.
  package func identifiers(of kind: NameKind, _: inout NameFaults) throws -> [String] {
    try identifiers(of: kind)
  }

  func identifiers(of kind: NameKind) throws -> [String] {
    // By their bytes, because two names may be equal as strings.
    var names: Set<[UInt8]> = []
    for letter in kind.letters {
      names.formUnion(try components(after: key(letter, isOwn: kind.isOwn)).map { Array($0) })
    }
    return names.compactMap(EncodedName.identifier(ofKey:)).sorted {
      $0.utf8.lexicographicallyPrecedes($1.utf8)
    }
  }

  /// Returns what follows a beginning in keys, up to the next slash, in key order.
  ///
  /// - Parameter limit: How many are looked for.
  /// - Complexity: One request for each, or one for a thousand that have one key each.
  func components(
    after start: [UInt8], upTo limit: Int = .max
  ) throws(EtcdError) -> [ArraySlice<UInt8>] {
    let deadline = callDeadline
    var found: [ArraySlice<UInt8>] = []
    var rest = KeyRange.prefix(start)
    while true {
      let page = try client.page(rest, keysOnly: true, limit: 1_000, until: deadline)
      for item in page.items {
        let component = item.key.dropFirst(start.count).prefix { $0 != UInt8(ascii: "/") }
        if found.last != component { found.append(component) }
      }
      guard page.isIncomplete, found.count < limit, let last = page.items.last?.key,
        let component = found.last
      else { return Array(found.prefix(limit)) }
      // Past all keys with the last one: "/" is followed by "0". One that ends its key has no others.
      let hasParts = start.count + component.count < last.count
      rest = .range(
        from: hasParts ? start + component + [UInt8(ascii: "0")] : last + [0],
        to: KeyRange.end(ofPrefix: start))
    }
  }
}

extension NameKind {
  /// The beginning of a kind's keys on etcd. A notification's state is a separate value.
  var letter: String {
    switch primitive {
    case .value: "v"
    case .notification: "n"
    case .presence: "p"
    case .consumer: "c"
    case .queue: "q"
    case .log: "l"
    }
  }

  /// The letters of all keys that a name of the kind has.
  var letters: [String] { primitive == .notification ? ["n", "s"] : [letter] }
}

extension EtcdContainer {
  /// Refuses a content that no key can have.
  static func requireSize(
    of content: [UInt8], _ action: String, path: String, remedy: String
  ) throws(WormholeError) {
    guard content.count > maximumBytes else { return }
    throw WormholeError(
      .tooLarge, action, path: path,
      reason: "it has \(content.count) bytes, and a key on etcd at most \(maximumBytes)",
      remedy: "send large content as a file" + remedy)
  }

  /// Returns the directory of this machine that belongs to a container on etcd: for files, which
  /// other machines do not see, and all that is tied to its processes. It is an ordinary container.
  ///
  /// `$XDG_STATE_HOME/wormhole/<digest of the cluster and the prefix>`, by default in
  /// `~/.local/state` (XDG Base Directory Specification 0.8).
  package func localDirectory() throws -> String {
    let identity = "\(client.clusterID ?? "")/\(location.prefix)"
    let digest = SHA256.hexDigest(of: Array(identity.utf8)).prefix(32)
    return try location.stateDirectory() + "/wormhole/" + digest
  }
}

// Reading, until the deadline.
extension EtcdContainer {
  package func item(_ key: [UInt8]) throws(EtcdError) -> KeyValue? {
    try client.item(key, until: callDeadline)
  }

  func read(_ range: KeyRange, keysOnly: Bool = false) throws(EtcdError) -> EtcdClient.Content {
    try client.read(range, keysOnly: keysOnly, until: callDeadline)
  }

  /// Returns at most one key of a range, without its value.
  func glance(at range: KeyRange) throws(EtcdError) -> EtcdClient.Content {
    try client.page(range, keysOnly: true, limit: 1, until: callDeadline)
  }
}
