import FoundationEssentials
import Wormhole
import WormholeSystem

/// The inspection of the directory of one log.
extension ContainerInspection {
  mutating func lookAtLog(_ name: String, _ path: String) {
    let log = container.log(name)
    let owner: Owner = (.log, name)
    var report = ContainerReport.NamedLog(name: name, path: log.path)
    let state = lookAtLogFile(log, path, &report)
    let first = state?.first ?? 1
    let furthest = state?.furthest ?? LogState.largest
    var leftovers: [Int] = []
    let entries = path + "/" + LogDirectory.entries
    for entry in list(entries, limit: Self.maximumMessages) {
      guard let number = LogDirectory.number(entry.name), entry.isDirectory != true,
        number <= furthest
      else {
        addForeign(entries + "/" + entry.name.text)
        continue
      }
      guard number >= first else {
        leftovers.append(number)
        continue
      }
      report.messages += 1
      report.first = min(report.first ?? number, number)
      report.last = max(report.last ?? number, number)
      if let status = status(path + "/" + LogDirectory.path(number)) {
        report.bytes += status.size
        report.newest = max(report.newest ?? .distantPast, status.modified)
      }
    }
    for number in leftovers { add(.abandonedEntry, path + "/" + LogDirectory.path(number), owner) }
    for entry in list(path) {
      switch entry.name.text {
      case log.value.fileName, LogDirectory.entries, NamedDirectory.identifierFile: continue
      case LeaseSite.lease: lookAtLease(owner, of: log.value.path, in: path)
      default: addForeign(path + "/" + entry.name.text)
      }
    }
    attempt("look who reads", path) { inspection in
      for subscriber in try log.subscribers() {
        let member = try log.member(for: subscriber.name)
        report.subscribers.append(.init(subscriber: subscriber, process: member))
      }
      report.subscribers.sort { $0.subscriber.name < $1.subscriber.name }
    }
    change(.log) { $0.logs.append(report) }
  }

  /// The largest number of messages that are looked at.
  private static let maximumMessages = 100_000

  private mutating func lookAtLogFile(
    _ log: Log, _ path: String, _ report: inout ContainerReport.NamedLog
  ) -> LogState? {
    let file = path + "/" + log.value.fileName
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
