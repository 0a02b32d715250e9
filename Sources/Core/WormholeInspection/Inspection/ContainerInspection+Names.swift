import FoundationEssentials
package import Wormhole
import WormholeSystem

extension ContainerInspection {
  mutating func lookAtName(_ identifier: String, of kind: NameKind, at path: String) {
    var found: FileStatus?
    attempt("look at a name", at: path) {
      found = try ifPresent(fileStatus(path, at: $0.directory))
    }
    // A sweep has removed it since it was listed.
    guard let found else {
      if LeaseFault.reportingSweptNames.isActive { addForeign(path, isInTheWay: true) }
      return
    }
    guard found.kind == .directory else { return addForeign(path, isInTheWay: true) }
    checkOwnerAndMode(path)
    let owner = Owner(kind: kind, identifier: identifier, path: path)
    switch kind.primitive {
    case .presence, .consumer: lookAtPresence(owner)
    case .queue: lookAtQueue(owner)
    case .log: lookAtLog(owner)
    case .value, .notification:
      // A name that cannot be looked at counts as used.
      if kind == .notification, (try? container.notification(identifier).isUsed()) == false {
        return
      }
      lookAtContent(PlainValue(container: container, identifier: identifier, kind: kind), kind)
      lookAtParts(of: owner)
    }
  }

  private mutating func lookAtContent(_ value: PlainValue, _ kind: NameKind) {
    let path = value.directory.relativePath + "/" + value.fileName
    let use = scope.use(value.identifier, kind)
    var content = ContainerReport.NamedContent(identifier: value.identifier, path: value.path)
    content.title = use?.title
    if kind == .notification { content.state = 0 }
    defer {
      let isKept = kind != .value || scope.keeps(content)
      report.change(kind) { names in
        if kind == .notification {
          names.notifications.append(content)
        } else if isKept {
          names.values.append(content)
        } else {
          names.left += 1
        }
      }
    }
    guard let status = status(path) else { return }
    checkOwnerAndMode(path)
    content.bytes = status.size
    content.modified = status.modified
    // Anything but a file of acceptable size is refused without being read.
    let isRead = status.kind == .regular && status.size <= Int64(SharedContainer.maximumFileBytes)
    guard mayRead(isRead ? status.size : 0) else {
      content.condition = .notRead
      return
    }
    content.read(use) { try value.snapshot() }
    // A value without a readable kept version is reported unchanged.
    if content.problem != nil { content.kept = try? value.keptInstead() }
  }
}

extension ContainerReport.NamedContent {
  /// Takes what a snapshot says, and looks for the fault in one of the package's own values.
  package mutating func read(_ use: OwnUse?, _ snapshot: () throws -> PlainSnapshot) {
    problem = failure(of: "read the value", path: path, otherwise: .inputOutput) {
      let snapshot = try snapshot()
      (version, expires) = (snapshot.version, snapshot.expiration)
      (publisher, kept) = (snapshot.publisher, snapshot.standsInFrom)
      bytes = try snapshot.bytes().map { Int64($0.count) }
      guard let content = try snapshot.propertyList() else {
        modified = nil
        return
      }
      if let reason = use?.problem(content) {
        throw WormholeError(.damaged, "read the value", path: path, reason: reason)
      }
      if state != nil { state = content.uint64Value }
      condition = .readable
    }
    if problem != nil { condition = .unreadable }
  }
}

extension ContainerInspection {
  mutating func lookAtPresence(_ owner: Owner) {
    let presence = PresenceDirectory(
      container: container, name: owner.identifier, kind: owner.kind)
    attempt("look who is present", at: owner.path) { inspection in
      guard let listing = try presence.look(movesAside: false) else { return }
      // A consumer's presence is reported with its queue.
      if owner.kind.primitive == .presence {
        let live = ContainerReport.NamedPresence(
          name: owner.identifier, path: presence.path, title: inspection.title(of: owner),
          members: listing.live)
        inspection.report.change(owner.kind) { $0.presences.append(live) }
      }
      for member in listing.dead {
        inspection.add(
          .abandonedPresence, owner.path + "/" + PresenceDirectory.memberName(member.id), of: owner)
      }
    }
    lookAtParts(of: owner) { inspection, found in
      if found.part.role == .registration { inspection.lookAtRegistration(found) }
      return found.part.role == .registration
    }
  }

  private mutating func lookAtRegistration(_ found: Found) {
    guard let status = status(found.path), status.kind == .regular else {
      return addForeign(found.path)
    }
    checkOwnerAndMode(found.path)
    attempt("look at a registration", at: found.path) { inspection in
      guard
        let directory = try ifPresent(
          FileDescriptor.openBeneath(
            found.owner.path, at: inspection.directory, [.readOnly, .directory]))
      else { return }
      let examiner = try PresenceDirectory.Examiner(directory, inspection.container.root)
      if try ifPresent(examiner.isAbandoned(found.name, removing: false)) == true {
        inspection.add(.abandonedPresence, found.path, of: found.owner)
      }
    }
  }
}

extension ContainerInspection {
  mutating func lookAtQueue(_ owner: Owner) {
    let queue = PlainQueue(container: container, name: owner.identifier, kind: owner.kind)
    var report = ContainerReport.NamedQueue(
      name: queue.name, path: queue.path, title: title(of: owner))
    var failures: [QueueEntryID] = []
    let now = Date()
    var abandoned: Set<EntryFile> = []
    var place: QueueDirectory?
    attempt("look who consumes", at: owner.path) { inspection in
      if inspection.scope.depth == .everything { place = try queue.open() }
      let live = try queue.role.place.look(movesAside: false)?.live ?? []
      let id = live.isEmpty ? nil : try queue.role.place.roleID()
      report.consumer = live.first { $0.id == id }
      report.workers = live.filter { !$0.isExclusive }
      abandoned = try queue.abandoned()
    }
    lookAtParts(of: owner) { inspection, found in
      let batch = EntryFile(bytes: found.name.bytes)
      let count = batch?.count ?? 0
      if let batch, [.waiting, .taken].contains(found.part.role) {
        inspection.read(batch, found, at: place)
      }
      switch found.part.role {
      case .waiting: if let batch { report.take(waiting: batch, now) }
      case .taken:
        if let batch, abandoned.contains(batch) {
          report.take(waiting: batch, now)
        } else {
          report.taken += count
        }
      case .receipt: report.receipts += count
      case .outcome: report.outcomes += 1
      case .failure:
        report.failed += 1
        if failures.count < Self.maximumFailures, let id = OutcomeFile.id(found.name.text) {
          failures.append(id)
        }
      default: return false
      }
      return true
    }
    lookAtFailures(failures, of: queue, &report)
    self.report.change(owner.kind) { $0.queues.append(report) }
  }

  private static let maximumFailures = 100

  private mutating func read(_ batch: EntryFile, _ found: Found, at place: QueueDirectory?) {
    guard let place, mayRead(Int64(batch.bytes)) else { return }
    let part = found.path.dropFirst(found.owner.path.count + 1)
      .dropLast(found.name.text.count + 1)
    let action = "read an entry of the queue \"\(found.owner.identifier)\""
    attempt(action, at: found.path) { inspection in
      guard let fault = try place.fault(of: batch, in: String(part)) else { return }
      if let refusal = fault.refusal { throw refusal }
      throw WormholeError(
        .damaged, action, path: inspection.absolute(found.path), reason: fault.reason,
        remedy: "the process that takes it puts it into the quarantine; send its content again")
    }
  }

  private mutating func lookAtFailures(
    _ ids: [QueueEntryID], of queue: PlainQueue, _ report: inout ContainerReport.NamedQueue
  ) {
    guard !ids.isEmpty else { return }
    attempt("look for what has failed", at: queue.directory.relativePath) { inspection in
      guard let place = try queue.open() else { return }
      for id in ids where inspection.mayRead(Int64(id.batch.bytes)) {
        if let failure = try place.failure(id) { report.failures.append(failure) }
      }
    }
  }
}

extension ContainerReport.NamedQueue {
  fileprivate mutating func take(waiting batch: EntryFile, _ now: Date) {
    waiting += batch.count
    waitingBytes += Int64(batch.bytes)
    // By its sender's clock, which never goes back; or when it is due.
    let date = Date(timeIntervalSince1970: Double(batch.due ?? batch.order) / 1e9)
    if batch.due != nil, date > now {
      delayed += batch.count
      nextDue = min(nextDue ?? .distantFuture, date)
    } else {
      oldest = min(oldest ?? .distantFuture, date)
    }
  }
}

extension ContainerInspection {
  mutating func lookAtLog(_ owner: Owner) {
    let log = container.log(owner.identifier)
    var report = ContainerReport.NamedLog(name: log.name, path: log.path)
    let state = lookAtFile(of: log, &report)
    let first = state?.first ?? 1
    let furthest = state?.furthest ?? LogState.largest
    var place: LogDirectory?
    if scope.depth == .everything {
      attempt("read the log", at: owner.path) { _ in place = try LogDirectory(log.value.directory) }
    }
    lookAtParts(of: owner) { inspection, found in
      guard found.part.role == .message, let number = LogDirectory.number(found.name) else {
        return false
      }
      if found.isDirectory == true || number > furthest {
        inspection.addForeign(found.path)
      } else if number < first {
        inspection.add(.abandonedEntry, found.path, of: owner)
      } else {
        report.messages += 1
        report.first = min(report.first ?? number, number)
        report.last = max(report.last ?? number, number)
        if let status = inspection.status(found.path) {
          report.bytes = report.bytes.adding(size: status.size)
          report.newest = max(report.newest ?? .distantPast, status.modified)
          inspection.read(number, found, size: status.size, at: place)
        }
      }
      return true
    }
    // The fault of the file would be reported twice.
    if report.problem == nil {
      attempt("look who reads", at: owner.path) { _ in try report.lookForReaders(of: log) }
    }
    self.report.change(.log) { $0.logs.append(report) }
  }

  private mutating func read(
    _ number: Int, _ found: Found, size: Int64, at place: LogDirectory?
  ) {
    guard let place, mayRead(min(size, Int64(SharedContainer.maximumFileBytes))) else { return }
    let action = "read message \(number) of the log \"\(found.owner.identifier)\""
    attempt(action, at: found.path) { inspection in
      guard let reason = try place.fault(of: number) else { return }
      throw WormholeError(
        .damaged, action, path: inspection.absolute(found.path), reason: reason,
        remedy: "readers pass it; remove the file if no backup has the message")
    }
  }

  private mutating func lookAtFile(
    of log: PlainLog, _ report: inout ContainerReport.NamedLog
  ) -> LogState? {
    let file = log.value.directory.relativePath + "/" + log.value.fileName
    guard let status = status(file) else { return nil }
    checkOwnerAndMode(file)
    guard mayRead(min(status.size, Int64(SharedContainer.maximumValueBytes))) else { return nil }
    var state: LogState?
    report.problem = failure(
      of: "read what is known about a log", path: log.value.path, otherwise: .inputOutput
    ) {
      state = try LogState.read(log.value.snapshot(), at: log.value.path)
      report.bounds = state?.bounds ?? .standard
    }
    return state
  }
}

extension ContainerReport.NamedLog {
  /// Adds the named subscribers, and the processes that read for them.
  package mutating func lookForReaders(of log: PlainLog) throws {
    for subscriber in try log.subscribers() {
      let member = try log.member(for: subscriber.name)
      subscribers.append(.init(subscriber: subscriber, process: member))
    }
    subscribers.sort { $0.subscriber.name < $1.subscriber.name }
  }
}
