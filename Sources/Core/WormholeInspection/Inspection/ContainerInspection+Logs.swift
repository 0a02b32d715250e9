import FoundationEssentials
import Wormhole
import WormholeSystem

/// The inspection of the directory of one log.
extension ContainerInspection {
  mutating func lookAtLog(_ owner: Owner) {
    let log = container.log(owner.identifier)
    var report = ContainerReport.NamedLog(name: log.name, path: log.path)
    let state = lookAtFile(of: log, &report)
    let first = state?.first ?? 1
    let furthest = state?.furthest ?? LogState.largest
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
          report.bytes += status.size
          report.newest = max(report.newest ?? .distantPast, status.modified)
        }
      }
      return true
    }
    attempt("look who reads", at: owner.path) { inspection in
      for subscriber in try log.subscribers() {
        let member = try log.member(for: subscriber.name)
        report.subscribers.append(.init(subscriber: subscriber, process: member))
      }
      report.subscribers.sort { $0.subscriber.name < $1.subscriber.name }
    }
    self.report.change(.log) { $0.logs.append(report) }
  }

  private mutating func lookAtFile(
    of log: Log, _ report: inout ContainerReport.NamedLog
  ) -> LogState? {
    let file = log.value.directory.relativePath + "/" + log.value.fileName
    guard let status = status(file) else { return nil }
    checkOwnerAndMode(file)
    guard mayRead(min(status.size, Int64(Value.maximumBytes))) else { return nil }
    do {
      let state = try LogState.read(log.value.snapshot(), at: log.value.path)
      report.bounds = state?.bounds ?? .standard
      return state
    } catch let error as AppGroupError {
      report.fault = error
    } catch {
      report.fault = AppGroupError(
        .inputOutput, "read what is known about a log", path: log.value.path, reason: "\(error)")
    }
    return nil
  }
}
