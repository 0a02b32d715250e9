import FoundationEssentials
import Wormhole
import WormholeSystem

/// The inspection of the directory of one queue.
extension ContainerInspection {
  mutating func lookAtQueue(_ owner: Owner) {
    let queue = Queue(container: container, name: owner.identifier, kind: owner.kind)
    var report = ContainerReport.NamedQueue(name: queue.name, path: queue.path)
    var failures: [QueueEntryID] = []
    let now = Date()
    lookAtParts(of: owner) { _, found in
      let batch = EntryFile(bytes: found.name.bytes)
      let count = batch?.count ?? 0
      switch found.part.role {
      case .waiting: if let batch { report.take(waiting: batch, now) }
      case .taken: report.taken += count
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
    attempt("look who consumes", at: owner.path) { inspection in
      let live = try queue.role.place.look(movesAside: false)?.live ?? []
      let id = live.isEmpty ? nil : try queue.role.roleID()
      report.consumer = live.first { $0.id == id }
      report.workers = live.filter { !$0.isExclusive }
    }
    self.report.change(owner.kind) { $0.queues.append(report) }
  }

  /// The largest number of failures that a report lists.
  private static let maximumFailures = 100

  private mutating func lookAtFailures(
    _ ids: [QueueEntryID], of queue: Queue, _ report: inout ContainerReport.NamedQueue
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
