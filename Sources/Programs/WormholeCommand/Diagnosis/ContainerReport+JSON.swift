import AppGroup
import FoundationEssentials
import PropertyLists

/// The output of `status --json`. Keys are only ever added; a key with an unknown value is left out.
extension ContainerReport {
  var propertyList: PropertyListValue {
    .object([
      "container": .string(path),
      "group": groupIdentifier.map { .string($0) },
      "formatVersion": formatVersion.map { .integer($0) },
      "created": created.map { .date($0.wholeSeconds) },
      "networkFileSystem": networkFileSystem.map { .string($0) },
      "values": .array(names.values.map { $0.propertyList(identifierKey: "identifier") }),
      "notifications": .array(names.notifications.map { $0.propertyList(identifierKey: "name") }),
      "presences": .array(names.presences.map(\.propertyList)),
      "queues": .array(names.queues.map(\.propertyList)),
      "own": own.propertyList,
      "leases": .array(leases.map(\.propertyList)),
      "leftovers": .array(
        leftovers.map { ["kind": .string($0.kind.rawValue), "path": .string($0.path)] }),
      "quarantine": .array(
        quarantine.map { ["path": .string($0.path), "bytes": .integer($0.bytes)] }),
      "foreignEntries": .array(foreignEntries.map { .string($0.path) }),
      "looseEntries": .array(looseEntries.map(\.propertyList)),
      "watches": watches.propertyList,
      "failures": .array(failures.map { .string("\($0)") }),
      "isPartial": .boolean(isPartial),
    ])
  }
}

extension ContainerReport.Names {
  /// The package's own names, each with its title.
  fileprivate var propertyList: PropertyListValue {
    let titled = { (value: PropertyListValue, title: String) in
      var value = value
      value["title"] = .string(title)
      return value
    }
    return [
      "values": .array(
        values.map {
          titled(
            $0.propertyList(identifierKey: "name"), OwnTitles.use(ofValue: $0.identifier).title)
        }),
      "presences": .array(
        presences.map { titled($0.propertyList, OwnTitles.title($0.name, .ownPresence)) }),
      "queues": .array(queues.map { titled($0.propertyList, OwnTitles.queue($0.name)) }),
    ]
  }
}

extension ContainerReport.NamedContent {
  fileprivate func propertyList(identifierKey: String) -> PropertyListValue {
    var problem: String?
    if case .unreadable(let error) = condition { problem = error.briefReason }
    return .object([
      identifierKey: .string(identifier),
      "path": .string(path),
      "condition": .string(conditionName),
      "problem": problem.map { .string($0) },
      "bytes": bytes.map { .integer($0) },
      "modified": modified.map { .date($0.wholeSeconds) },
      "state": state.map { PropertyListValue($0) },
    ])
  }

  private var conditionName: String {
    switch condition {
    case .absent: "absent"
    case .readable: "readable"
    case .unreadable: "unreadable"
    case .notRead: "notRead"
    }
  }
}

extension ContainerReport.NamedPresence {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "name": .string(name),
      "path": .string(path),
      "members": .array(members.map(\.propertyList)),
    ])
  }
}

extension PresenceMember {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "id": .string(id),
      "process": .integer(Int64(processID)),
      "program": .string(program),
      "state": .string(state.rawValue),
      "since": .date(since.wholeSeconds),
      "isExclusive": .boolean(isExclusive),
      "content": content,
    ])
  }
}

extension ContainerReport.NamedQueue {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "name": .string(name),
      "path": .string(path),
      "waiting": .integer(Int64(waiting)),
      "waitingBytes": .integer(waitingBytes),
      "oldest": oldest.map { .date($0.wholeSeconds) },
      "taken": .integer(Int64(taken)),
      "consumer": consumer?.propertyList,
      "outcomes": .integer(Int64(outcomes)),
      "receipts": .integer(Int64(receipts)), "failed": .integer(Int64(failed)),
    ])
  }
}

extension ContainerReport.HeldLease {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "identifier": .string(identifier),
      "isOwn": .boolean(kind.isOwn),
      "path": .string(path),
      "process": holder.processID.map { .integer(Int64($0)) },
      "program": holder.program.map { .string($0) },
      "state": .string(holder.state.rawValue),
      "heldSeconds": holder.held.map { .real($0.seconds) },
      "termSeconds": term.map { .real($0.seconds) },
      "overdue": overdue.map { .string($0.rawValue) },
    ])
  }
}

extension ContainerReport.LooseEntry {
  fileprivate var propertyList: PropertyListValue {
    [
      "path": .string(path), "owner": .integer(Int64(owner)),
      "mode": .string(String(permissions, radix: 8)), "isForeign": .boolean(isForeign),
    ]
  }
}

extension ContainerReport.WatchUse {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "watches": .integer(Int64(watches)),
      "maximumWatches": maximumWatches.map { .integer(Int64($0)) },
      "instances": .integer(Int64(instances)),
      "maximumInstances": maximumInstances.map { .integer(Int64($0)) },
      "refusal": refusal.map { .string("\($0)") },
    ])
  }
}

extension PropertyListValue {
  /// A dictionary of the keys with a known value.
  static func object(_ members: [String: PropertyListValue?]) -> PropertyListValue {
    .dictionary(members.compactMapValues { $0 })
  }
}

extension Duration {
  var seconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}

extension Date {
  /// A status shows no fractions of a second.
  var wholeSeconds: Date {
    Date(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate.rounded(.down))
  }
}
