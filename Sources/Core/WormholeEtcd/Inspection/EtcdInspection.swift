import Wormhole
import WormholeInspection
import WormholeSystem

/// Examines a container on etcd, and its cluster, without changing anything.
struct EtcdInspection {
  /// The largest number of names of a kind that are examined.
  private static let maximumNames = 10_000
  /// How many values one request reads, each of at most a megabyte.
  private static let valuesAtOnce = 32

  private let container: SharedContainer
  private let etcd: EtcdContainer
  private let scope: ReportScope
  private let deadline: ContinuousClock.Instant
  private(set) var report: ContainerReport
  /// The keys of a container with few keys.
  private var keys: [ContainerKey]?

  init(_ container: SharedContainer, on etcd: EtcdContainer, _ scope: ReportScope) {
    deadline = etcd.callDeadline
    self.container = container.limited(until: deadline)
    self.etcd = etcd.with(CallLimit(deadline))
    self.scope = scope
    report = ContainerReport(path: container.location)
    report.groupIdentifier = container.groupIdentifier
    report.formatVersion = EtcdContainer.formatVersion
  }

  private mutating func attempt(_ action: String, _ body: (inout Self) throws -> Void) {
    let failure = failure(of: action, path: container.location, otherwise: .inputOutput) {
      try body(&self)
    }
    if let failure { report.failures.append(failure) }
  }

  // MARK: The cluster

  /// Looks at the cluster, and at the names while its members answer.
  mutating func lookAtClusterAndNames() {
    let (client, deadline, examinesAll) = (etcd.client, deadline, scope.depth == .everything)
    var cluster = ClusterReport(of: etcd.location, through: client)
    var (members, alarms) = (RequestsUnderWay<[WireMember]>(), RequestsUnderWay<[String]>())
    members.add { try client.members(until: deadline) }
    alarms.add { try client.alarms(until: deadline) }
    var known: [WireMember] = []
    var ids: [String: String] = [:]
    for endpoint in client.endpoints {
      var (member, status) = client.member(at: endpoint, until: deadline)
      if let status {
        ids[endpoint] = status.memberID
        cluster.revision = max(cluster.revision, status.revision)
        if status.leaderID != nil { cluster.hasLeader = true }
        if examinesAll { examine(&member, of: &cluster) }
      }
      cluster.members.append(member)
    }
    let location = etcd.location
    let files = examinesAll ? [location.authorities, location.certificate] : []
    for file in files.compactMap({ $0 }) {
      // A request that uses the file reports why it cannot be read.
      let content = try? FileDescriptor.open(file, [.readOnly, .nonBlocking])
        .readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
      cluster.certificates += Self.certificate(
        content.map { String(decoding: $0, as: UTF8.self) }, at: file,
        isOwn: file == location.certificate)
    }
    lookAtNames()
    attempt("list the members of the cluster") { inspection in
      known = try members.next()
      cluster.alarms = try alarms.next()
      guard examinesAll else { return }
      cluster.oldestRevision = try inspection.oldestRevision()
      cluster.replacement = try inspection.etcd.historyRecord()
      cluster.keys = try inspection.etcd.client.count(
        inspection.etcd.keys, until: inspection.deadline)
      // etcd refuses a user who may not read the keys of all leases; then their number is unknown.
      cluster.leases = try? inspection.etcd.client.leaseCount(until: inspection.deadline)
      cluster.nested = try inspection.etcd.nestedPrefixes()
      inspection.report.foreignEntries.removeAll { entry in
        cluster.nested.contains { entry.path.hasPrefix($0 + "/") }
      }
    }
    for member in known {
      let (id, name) = (member.number ?? "", EtcdWire.shown(member.name ?? ""))
      let addresses = (member.addresses ?? []).map { EtcdWire.shown($0) }
      if let index = cluster.members.firstIndex(where: {
        ids[$0.endpoint] == id || addresses.contains($0.endpoint)
      }) {
        cluster.members[index].name = name
      } else if !ids.values.contains(id), let endpoint = addresses.first {
        var other = ClusterReport.Member(endpoint: endpoint)
        other.name = name
        other.isNamed = false
        cluster.members.append(other)
      }
    }
    report.cluster = cluster
  }

  private func examine(_ member: inout ClusterReport.Member, of cluster: inout ClusterReport) {
    let endpoint = member.endpoint
    // A member that no longer answers is reported by what follows.
    member.clockDifference = try? etcd.client.clockDifference(of: endpoint, until: memberDeadline)
    do throws(EtcdError) {
      member.watchDelay = try etcd.client.watchDelay(
        of: etcd.formatKey, at: endpoint, until: memberDeadline)
    } catch {
      member.watchFailure = error.reason
    }
    // The same, and without the certificate everything else is still reported.
    let pem = try? etcd.client.cluster.certificate(at: endpoint, until: memberDeadline)
    cluster.certificates += Self.certificate(pem, at: endpoint)
  }

  private static func certificate(
    _ pem: String?, at place: String, isOwn: Bool = false
  ) -> [ClusterReport.Certificate] {
    guard let text = pem.flatMap({ CertificateText(pem: $0) }) else { return [] }
    return [
      ClusterReport.Certificate(
        place: place, end: text.end, commonName: text.commonName.map { EtcdWire.shown($0) },
        isOwn: isOwn)
    ]
  }

  private var memberDeadline: ContinuousClock.Instant {
    min(deadline, .now + EtcdClient.memberPatience)
  }

  /// The history of the version's key shows it, because the key never changes.
  private func oldestRevision() throws -> Int64 {
    do throws(EtcdError) {
      _ = try etcd.client.firstChange(of: etcd.formatKey, from: 1, until: deadline)
      return 1
    } catch {
      guard error.code == .compacted, let revision = error.revision else { throw error }
      return revision
    }
  }

  // MARK: The content

  mutating func lookAtNames() {
    attempt("look through the names") { try $0.listAll() }
    // A consumer is reported with its queue.
    for kind in NameKind.users + NameKind.owns where kind.primitive != .consumer {
      let names = kind.primitive == .presence ? "presences" : kind.primitive.rawValue
      attempt("look through the \(names)") { try $0.lookAtNames(of: kind) }
    }
    for value in report.names.values { _ = scope.keeps(value) }
  }

  /// Examines one name after another, as long as there is time.
  private mutating func lookAtNames(of kind: NameKind) throws {
    let all = try names(of: kind).filter { scope.includes($0, kind) }
    var rest = all.prefix(Self.maximumNames)
    // By the bytes of the names, of which two may be equal as strings.
    var ahead: [[UInt8]: SeenState] = [:]
    while let name = rest.first {
      if kind.primitive == .value {
        if ahead.isEmpty { ahead = try states(of: rest, kind) }
      } else if ContinuousClock.now >= deadline {
        break
      }
      try look(at: name, kind, ahead.removeValue(forKey: Array(name.utf8)))
      rest.removeFirst()
    }
    if all.count > Self.maximumNames || ContinuousClock.now >= deadline { report.isPartial = true }
  }

  /// - Parameter state: A value's state; nil if there was no time to read it.
  private mutating func look(at name: String, _ kind: NameKind, _ state: SeenState?) throws {
    switch kind.primitive {
    case .value:
      guard let content = value(name, kind, state) else { return }
      report.change(kind) { $0.values.append(content) }
    case .notification:
      let content = notification(name)
      report.change(kind) { $0.notifications.append(content) }
    case .presence, .consumer:
      let presence = Presence(container: container, name: name, kind: kind)
      let found = try ContainerReport.NamedPresence(
        name: name, path: presence.path, title: scope.use(name, kind)?.title,
        members: presence.members())
      report.change(kind) { $0.presences.append(found) }
    case .queue:
      let found = try queue(name, kind)
      report.change(kind) { $0.queues.append(found) }
    case .log:
      let found = try log(name)
      report.change(kind) { $0.logs.append(found) }
    }
  }

  /// Lists all keys of the container, by one request, unless there are too many.
  private mutating func listAll() throws(EtcdError) {
    let page = try etcd.client.page(etcd.keys, keysOnly: true, limit: 1_000, until: deadline)
    guard !page.isIncomplete else { return }
    let all = page.items.map { $0.key.dropFirst(etcd.start.count) }
    keys = all.compactMap { ContainerKey($0) }
    report.foreignEntries = all.filter(EtcdContainer.isForeign).map {
      .init(path: String(decoding: etcd.start + $0, as: UTF8.self), isInTheWay: false)
    }
  }

  private func names(of kind: NameKind) throws -> [String] {
    let found =
      try keys?.filter { $0.isOwn == kind.isOwn && kind.letters.contains($0.letter) }
      .map(\.name) ?? container.identifiers(of: kind)
    return Set(found.map { Array($0.utf8) }).sorted { $0.lexicographicallyPrecedes($1) }
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// Reads the first of some values, by one request.
  private func states(
    of names: ArraySlice<String>, _ kind: NameKind
  ) throws(EtcdError) -> [[UInt8]: SeenState] {
    guard ContinuousClock.now < deadline else { return [:] }
    let names = names.prefix(Self.valuesAtOnce)
    let found = try etcd.client.read(
      names.map { .init(.key(etcd.key(kind, $0))) }, until: deadline)
    let states = found.items.map { SeenState(item: $0.first, seen: found.moment) }
    return Dictionary(zip(names.map { Array($0.utf8) }, states)) { first, _ in first }
  }

  private func value(
    _ name: String, _ kind: NameKind, _ state: SeenState?
  ) -> ContainerReport.NamedContent? {
    let value = EtcdValue(etcd, container: container, name, kind: kind)
    let use = scope.use(name, kind)
    var content = ContainerReport.NamedContent(identifier: name, path: value.path)
    content.title = use?.title
    guard let state else {
      content.condition = .notRead
      return content
    }
    let snapshot = value.snapshot(of: state)
    // A removed name no longer exists.
    guard !snapshot.isAbsent else { return nil }
    content.modified = snapshot.publisher?.date
    content.read(use) { snapshot }
    return content
  }

  private func notification(_ name: String) -> ContainerReport.NamedContent {
    var content = ContainerReport.NamedContent(
      identifier: name, path: etcd.location(of: etcd.key(.notification, name)))
    content.problem = failure(of: "read the state", path: content.path) {
      content.state = try container.notification(name).state()
    }
    content.condition = content.problem == nil ? .readable : .unreadable
    return content
  }

  private func log(_ name: String) throws -> ContainerReport.NamedLog {
    let log = container.log(name)
    var found = ContainerReport.NamedLog(name: name, path: log.path)
    found.problem = failure(of: "read what is known about a log", path: log.value.path) {
      guard let state = try LogState.read(log.value.snapshot(), at: log.value.path) else { return }
      found.bounds = state.bounds
      found.bytes = Int64(state.bytes)
    }
    if let place = try log.store.open() {
      let numbers = try place.numbers()
      found.messages = numbers.count
      (found.first, found.last) = (numbers.min(), numbers.max())
      found.newest = try found.last.flatMap { try place.status($0) }?.date
    }
    try found.lookForReaders(of: log)
    return found
  }

  private func queue(_ name: String, _ kind: NameKind) throws -> ContainerReport.NamedQueue {
    let queue = PlainQueue(container: container, name: name, kind: kind)
    var found = ContainerReport.NamedQueue(
      name: name, path: queue.path, title: scope.use(name, kind)?.title)
    let keys = EtcdQueue(queue, in: etcd)
    let parts: [QueueKeyPart] = [.entries, .owners, .outcomes, .receipts, .failures]
    let counted = try etcd.commit(
      EtcdTransaction(if: [], then: parts.map { .count(keys.range($0)) }))
    let counts = counted.results.map { if case .count(let count) = $0 { Int(count) } else { 0 } }
    if counts[1] > 0 { found.taken = max(0, counts[1] - (try keys.abandoned().count)) }
    (found.outcomes, found.receipts) = (counts[2], counts[3])
    found.waiting = max(0, counts[0] - found.taken)
    found.failed = counts[4]
    let members = try queue.role.members()
    found.consumer = members.first(where: \.isExclusive)
    found.workers = members.filter { !$0.isExclusive }
    return found
  }
}

extension EtcdContainer {
  /// The beginnings of a container's keys.
  private static let letters = ["v", "n", "s", "p", "c", "q", "b", "l", "own"]
  private static let singles = ["format", "copying", "history", "sweeps"]
  /// How many such beginnings are looked at.
  private static let maximumBeginnings = 64

  /// Whether a key without the prefix lies among the container's keys, but is not one. Keys beside
  /// them are other programs', and those of mailboxes end with their processes.
  static func isForeign(_ key: ArraySlice<UInt8>) -> Bool {
    let first = key.prefix { $0 != UInt8(ascii: "/") }
    return letters.contains { $0 != "b" && $0.utf8.elementsEqual(first) }
      && CopiedKey(key, []) == nil
  }

  /// Returns the prefixes of other containers whose keys and this one's are mixed.
  ///
  /// - Complexity: As `components`, and a request.
  func nestedPrefixes() throws(EtcdError) -> [String] {
    let call = call()
    let parts = location.prefix.split(separator: "/", omittingEmptySubsequences: false)
    let above = parts.indices.dropFirst().map { parts[..<$0].joined(separator: "/") }
    let foreign = try call.components(after: start, upTo: Self.maximumBeginnings)
      .map { String(decoding: $0, as: UTF8.self) }
      .filter { !Self.letters.contains($0) && !Self.singles.contains($0) }
    let prefixes = (above + (Self.letters + foreign).map { location.prefix + "/" + $0 })
      .prefix(EtcdContainer.maximumOperations)
    let found = try call.commit(
      EtcdTransaction(
        if: [], then: prefixes.map { .read(.key(Array(($0 + "/format").utf8))) }))
    return zip(prefixes, found.results).filter { _, result in
      // A value of this name has more bytes.
      result.items.first.map { $0.value.count < Stamp.bytes } ?? false
    }.map(\.0)
  }
}
