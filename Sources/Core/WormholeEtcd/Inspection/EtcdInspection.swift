import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists

/// Examines a container on etcd, and its cluster, without changing anything.
struct EtcdInspection {
  /// How long one member may take for its answer. All of it has the time of a call.
  private static let memberPatience: Duration = .seconds(2)
  /// The largest number of names of a kind that are examined.
  private static let maximumNames = 10_000

  private let container: SharedContainer
  private let etcd: EtcdContainer
  private let problem: (_ name: String, _ content: PropertyListValue) -> String?
  private let deadline = CallLimit.deadline
  private var report: ContainerReport

  static func report(
    on container: SharedContainer, _ etcd: EtcdContainer,
    _ problem: @escaping (String, PropertyListValue) -> String?
  ) throws -> ContainerReport {
    var inspection = Self(container, etcd, problem)
    CallLimit.within(inspection.deadline) {
      inspection.lookAtCluster()
      inspection.lookAtNames()
    }
    return inspection.report
  }

  private init(
    _ container: SharedContainer, _ etcd: EtcdContainer,
    _ problem: @escaping (String, PropertyListValue) -> String?
  ) {
    self.container = container
    self.etcd = etcd
    self.problem = problem
    report = ContainerReport(path: container.location)
    report.groupIdentifier = container.groupIdentifier
    report.formatVersion = EtcdContainer.formatVersion
  }

  private mutating func attempt(
    _ action: String, _ path: String, _ body: (inout Self) throws -> Void
  ) {
    do {
      try reporting(action, path: path) { try body(&self) }
    } catch let error as AppGroupError {
      report.failures.append(error)
    } catch {
      report.failures.append(
        AppGroupError(.inputOutput, action, path: path, reason: "\(error)"))
    }
  }

  // MARK: The cluster

  private mutating func lookAtCluster() {
    var cluster = ClusterReport()
    cluster.user = etcd.location.user
    cluster.lifetime = etcd.location.lifetime
    let endpoints = etcd.client.endpoints
    cluster.isEncrypted = endpoints.allSatisfy { $0.hasPrefix("https:") }
    cluster.isLoopback = endpoints.allSatisfy(EtcdLocation.isLoopback)
    var known: [EtcdClient.Member] = []
    var statuses: [String: EtcdClient.MemberStatus] = [:]
    for endpoint in endpoints {
      var member = ClusterReport.Member(endpoint: endpoint)
      do throws(EtcdError) {
        let status = try etcd.client.status(
          of: endpoint, until: min(deadline, .now + Self.memberPatience))
        statuses[endpoint] = status
        member.take(status)
        cluster.revision = max(cluster.revision, status.revision)
        if status.leaderID != nil { cluster.hasLeader = true }
        lookAtClock(of: &member)
        lookAtWatches(of: &member)
      } catch {
        let prefix = endpoint + ": "
        member.failure =
          error.reason.hasPrefix(prefix)
          ? String(error.reason.dropFirst(prefix.count)) : error.reason
      }
      cluster.members.append(member)
    }
    attempt("list the members of the cluster", container.location) { inspection in
      known = try inspection.etcd.client.members(until: inspection.deadline)
      cluster.alarms = try inspection.etcd.client.alarms(until: inspection.deadline)
      cluster.oldestRevision = try inspection.oldestRevision()
      cluster.replacement = try inspection.etcd.historyRecord().map {
        .init(
          date: $0.date, known: $0.replacement.known, found: $0.replacement.found, host: $0.host)
      }
    }
    let answered = Set(statuses.values.map(\.memberID))
    for member in known {
      if let index = cluster.members.firstIndex(where: {
        statuses[$0.endpoint]?.memberID == member.memberID
          || member.endpoints.contains($0.endpoint)
      }) {
        cluster.members[index].name = member.name
      } else if !answered.contains(member.memberID), let endpoint = member.endpoints.first {
        var other = ClusterReport.Member(endpoint: endpoint)
        other.name = member.name
        other.isNamed = false
        cluster.members.append(other)
      }
    }
    report.cluster = cluster
  }

  private func lookAtClock(of member: inout ClusterReport.Member) {
    do throws(EtcdError) {
      member.clockDifference = try etcd.client.clockDifference(
        of: member.endpoint, until: min(deadline, .now + Self.memberPatience))
    } catch {
      // It answered a moment ago, and is asked again below.
      member.clockDifference = nil
    }
  }

  /// Lets a member tell something by a watch.
  private func lookAtWatches(of member: inout ClusterReport.Member) {
    do throws(EtcdError) {
      member.watchDelay = try etcd.client.watchDelay(
        of: etcd.formatKey, at: member.endpoint,
        until: min(deadline, .now + Self.memberPatience))
    } catch {
      member.watchFailure = error.reason
    }
  }

  /// The history of the version's key tells: it never changes.
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

  private mutating func lookAtNames() {
    for isOwn in [false, true] {
      var names = ContainerReport.Names()
      attempt("look through the values", container.location) {
        names.values = try $0.values(isOwn: isOwn)
      }
      if !isOwn {
        attempt("look through the notifications", container.location) {
          names.notifications = try $0.notifications()
        }
      }
      attempt("look through the presences", container.location) {
        names.presences = try $0.presences(isOwn: isOwn)
      }
      attempt("look through the queues", container.location) {
        names.queues = try $0.queues(isOwn: isOwn)
      }
      names.sort()
      if isOwn { report.own = names } else { report.names = names }
    }
  }

  private mutating func limited(_ names: [String]) -> [String] {
    if names.count > Self.maximumNames || ContinuousClock.now >= deadline {
      report.isPartial = true
    }
    return Array(names.prefix(Self.maximumNames))
  }

  /// Looks at one name after the other, as long as there is time.
  private mutating func examining<Found>(
    _ names: [String], _ look: (String) throws -> Found
  ) throws -> [Found] {
    var found: [Found] = []
    for name in limited(names) {
      guard ContinuousClock.now < deadline else {
        report.isPartial = true
        break
      }
      found.append(try look(name))
    }
    return found
  }

  private mutating func values(isOwn: Bool) throws -> [ContainerReport.NamedContent] {
    let kind = isOwn ? NameKind.ownValue : .value
    return try limited(container.identifiers(of: kind)).compactMap { identifier in
      let value = isOwn ? container.own.value(identifier) : container.value(identifier)
      var content = ContainerReport.NamedContent(identifier: identifier, path: value.path)
      guard ContinuousClock.now < deadline else {
        content.condition = .notRead
        return content
      }
      let snapshot = try value.snapshot()
      // What was removed is no name any more.
      guard !snapshot.isAbsent else { return nil }
      content.bytes = try snapshot.bytes().map { Int64($0.count) }
      content.publisher = snapshot.publisher
      content.modified = snapshot.publisher?.date
      content.expiration = snapshot.expiration
      do {
        let found = try snapshot.propertyList() ?? .dictionary([:])
        content.condition = .readable
        if isOwn, let fault = problem(identifier, found) {
          content.condition = .unreadable(
            AppGroupError(.damaged, "read the value", path: value.path, reason: fault))
        }
      } catch let error as AppGroupError {
        content.condition = .unreadable(error)
      }
      return content
    }
  }

  private mutating func notifications() throws -> [ContainerReport.NamedContent] {
    let (container, etcd) = (container, etcd)
    return try examining(container.notificationNames()) { name in
      var content = ContainerReport.NamedContent(
        identifier: name, path: etcd.location(of: etcd.key(.notification, name)))
      do {
        content.state = try container.notification(name).state()
        content.condition = .readable
      } catch let error as AppGroupError {
        content.condition = .unreadable(error)
      }
      return content
    }
  }

  private mutating func presences(isOwn: Bool) throws -> [ContainerReport.NamedPresence] {
    let names = isOwn ? try container.own.presenceNames() : try container.presenceNames()
    let container = container
    return try examining(names) { name in
      let presence = isOwn ? container.own.presence(name) : container.presence(name)
      return ContainerReport.NamedPresence(
        name: name, path: presence.path, members: try presence.members())
    }
  }

  private mutating func queues(isOwn: Bool) throws -> [ContainerReport.NamedQueue] {
    let kind = isOwn ? NameKind.ownQueue : .queue
    let (container, etcd) = (container, etcd)
    return try examining(container.identifiers(of: kind)) { name in
      let queue = isOwn ? container.own.queue(name) : container.queue(name)
      var found = ContainerReport.NamedQueue(name: name, path: queue.path)
      let count = { (part: String) throws(EtcdError) in
        try etcd.client.count(
          .prefix(etcd.key(kind, name, "/\(part)/")), until: CallLimit.deadline)
      }
      let entries = try count("e")
      found.taken = try count("d")
      found.waiting = max(0, entries - found.taken)
      found.outcomes = try count("o")
      found.receipts = try count("r")
      found.failed = try count("f")
      let members = try queue.role.members()
      found.consumer = members.first(where: \.isExclusive)
      found.workers = members.filter { !$0.isExclusive }
      return found
    }
  }
}

extension ClusterReport.Member {
  fileprivate mutating func take(_ status: EtcdClient.MemberStatus) {
    version = status.version
    isLeader = status.leaderID == status.memberID
    revision = status.revision
    databaseBytes = status.databaseBytes
    usedBytes = status.usedBytes
    roundTrip = status.roundTrip
  }
}
