import FoundationEssentials
import Wormhole
import WormholeSystem

/// The inspection of the directory of one queue.
extension ContainerInspection {
  mutating func lookAtQueue(_ name: String, _ kind: NameKind, _ path: String) {
    let queue = Queue(container: container, name: name, kind: kind)
    let owner = (kind: kind, identifier: name)
    var report = ContainerReport.NamedQueue(name: name, path: queue.path)
    let now = Date()
    count(path + "/" + QueueDirectory.pending) { entry in
      guard let batch = EntryFile(bytes: entry.name.bytes) else { return false }
      report.waiting += batch.count
      report.waitingBytes += Int64(batch.bytes)
      if batch.due != nil, batch.date > now {
        report.delayed += batch.count
        report.nextDue = min(report.nextDue ?? .distantFuture, batch.date)
      } else {
        report.oldest = min(report.oldest ?? .distantFuture, batch.date)
      }
      return true
    }
    lookAtTaken(path + "/" + QueueDirectory.taken, &report)
    count(path + "/" + QueueDirectory.outcomes) { entry in
      guard OutcomeFile.id(entry.name.text) != nil else { return false }
      report.outcomes += 1
      return true
    }
    lookAtSent(owner, path + "/" + QueueDirectory.sent, &report)
    lookAtFailures(queue, path + "/" + QueueDirectory.failed, &report)
    lookAtStaged(owner, path + "/" + QueueDirectory.staged)
    lookAtMarks(owner, path)
    lookAtAttachments(owner, path + "/" + AttachmentPlace.directory)
    lookAtLease(owner, of: queue.path, in: path)
    attempt("look who consumes", path) { inspection in
      let live = try queue.role.place.look(movesAside: false)?.live ?? []
      let id = live.isEmpty ? nil : try queue.role.roleID()
      report.consumer = live.first { $0.id == id }
      report.workers = live.filter { !$0.isExclusive }
    }
    change(kind) { $0.queues.append(report) }
  }

  private mutating func lookAtTaken(_ path: String, _ report: inout ContainerReport.NamedQueue) {
    for consumer in list(path) where consumer.isDirectory != false {
      count(path + "/" + consumer.name.text) { entry in
        let name = entry.name.text
        if let batch = EntryFile(name) {
          report.taken += batch.count
          return true
        }
        // The consumer's own, as long as it lives; the next consumer sweeps them.
        return QueueDirectory.batch(besideWhich: name) != nil
          || name.hasPrefix(QueueDirectory.passingPrefix)
          || name.hasPrefix(AttachmentPlace.takenPrefix)
          || name.hasPrefix(AttachmentPlace.makingPrefix)
      }
    }
  }

  private mutating func lookAtFailures(
    _ queue: Queue, _ path: String, _ report: inout ContainerReport.NamedQueue
  ) {
    var ids: [QueueEntryID] = []
    var count = 0
    self.count(path) { entry in
      guard let id = OutcomeFile.id(entry.name.text) else {
        // A file that belongs to an entry.
        return entry.name.text.hasPrefix(AttachmentPlace.takenPrefix)
      }
      count += 1
      if ids.count < Self.maximumFailures { ids.append(id) }
      return true
    }
    report.failed = count
    guard !ids.isEmpty else { return }
    attempt("look for what has failed", path) { inspection in
      guard let place = try queue.open() else { return }
      for id in ids where inspection.mayRead(Int64(id.batch.bytes)) {
        if let failure = try place.failure(id) { report.failures.append(failure) }
      }
    }
  }

  /// The largest number of failures that a report lists.
  private static let maximumFailures = 100

  private mutating func lookAtSent(
    _ owner: Owner, _ path: String, _ report: inout ContainerReport.NamedQueue
  ) {
    var forgotten: [String] = []
    count(path) { entry in
      let name = entry.name.text
      if let batch = EntryFile(name) {
        report.receipts += batch.count
        return true
      }
      guard name.hasSuffix(QueueDirectory.forgottenSuffix) else { return false }
      forgotten.append(String(name.dropLast(QueueDirectory.forgottenSuffix.count)))
      return true
    }
    for name in forgotten where status(path + "/" + name) == nil {
      add(.abandonedEntry, path + "/" + name + QueueDirectory.forgottenSuffix, owner)
    }
  }

  private mutating func lookAtStaged(_ owner: Owner, _ path: String) {
    for entry in list(path) {
      let place = path + "/" + entry.name.text
      guard let status = status(place) else { continue }
      let isAbandoned =
        status.kind == .regular ? !isBeingWritten(status, place) : isStale(place)
      if isAbandoned { add(.abandonedEntry, place, owner) }
    }
  }

  private mutating func lookAtMarks(_ owner: Owner, _ path: String) {
    let keys = path + "/" + QueueDirectory.keys
    for key in list(keys, limit: Self.maximumNames) {
      let marks = keys + "/" + key.name.text
      for mark in list(marks, limit: Self.maximumNames) {
        let place = marks + "/" + mark.name.text
        guard let id = OutcomeFile.id(mark.name.text) else {
          addForeign(place)
          continue
        }
        guard let file = status(place),
          status(path + "/" + QueueDirectory.pendingPath(id.batch)) == nil
        else { continue }
        if !isBeingWritten(file, place) { add(.abandonedEntry, place, owner) }
      }
    }
  }

  private mutating func lookAtAttachments(_ owner: Owner, _ path: String) {
    for entry in list(path) {
      let place = path + "/" + entry.name.text
      guard AttachmentPlace.isID(entry.name.text), let status = status(place),
        status.kind == .directory
      else {
        addForeign(place)
        continue
      }
      // A complete file belongs to its sender, which may come back, so it is not a leftover.
      let isWhole = self.status(place + "/" + AttachmentPlace.content) != nil
      if !isWhole, !isBeingWritten(status, place) { add(.abandonedEntry, place, owner) }
    }
  }

  /// Returns whether a file is being written; its writer keeps it locked as long as it lives.
  func isBeingWritten(_ status: FileStatus, _ path: String) -> Bool {
    locks.map { !$0.holders(of: status).isEmpty } ?? !isStale(path)
  }

  /// Passes the entries of a directory to a closure, however many there are, as long as there is
  /// time.
  ///
  /// - Parameter isOurs: Returns false for an entry that does not belong to the queue.
  private mutating func count(_ path: String, _ isOurs: (FileDescriptor.Entry) -> Bool) {
    guard let kind = status(path)?.kind else { return }
    guard kind == .directory else { return addForeign(path, isInTheWay: true) }
    attempt("list the directory", path) { inspection in
      let directory = try FileDescriptor.openBeneath(
        path, at: inspection.directory, [.readOnly, .directory])
      var foreign: [String] = []
      while try directory.nextEntries({ entry in
        if !isOurs(entry), foreign.count < Self.maximumEntries {
          foreign.append(path + "/" + entry.name.text)
        }
      }) { guard inspection.mayRead(0) else { break } }
      for path in foreign { inspection.addForeign(path) }
    }
  }
}

extension EntryFile {
  /// The time of sending by its sender's clock, which never goes back; or when it is due.
  var date: Date { Date(timeIntervalSince1970: Double(due ?? order) / 1e9) }
}
