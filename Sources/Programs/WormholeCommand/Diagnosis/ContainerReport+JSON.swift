import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists

/// The output of `status --json`. Keys are only ever added; a key with an unknown value is left out.
extension ContainerReport {
  var propertyList: PropertyListValue {
    .object([
      "container": path, "group": groupIdentifier, "formatVersion": formatVersion,
      "created": created?.wholeSeconds, "networkFileSystem": networkFileSystem,
      "values": names.values.map { $0.propertyList(identifierKey: "identifier") },
      "notifications": names.notifications.map { $0.propertyList(identifierKey: "name") },
      "presences": names.presences.map(\.propertyList),
      "queues": names.queues.map(\.propertyList),
      "logs": names.logs.map(\.propertyList),
      "own": own.propertyList,
      "leases": leases.map(\.propertyList),
      "leftovers": leftovers.map {
        PropertyListValue.object(["kind": $0.kind.rawValue, "path": $0.path])
      },
      "quarantine": quarantine.map {
        PropertyListValue.object(["path": $0.path, "bytes": $0.bytes])
      },
      "foreignEntries": foreignEntries.map(\.path),
      "looseEntries": looseEntries.map(\.propertyList),
      "watches": watches.propertyList,
      "cluster": cluster?.propertyList,
      "failures": failures.map { "\($0)" },
      "isPartial": isPartial,
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
    return .object([
      "values": values.map {
        titled($0.propertyList(identifierKey: "name"), OwnTitles.use(ofValue: $0.identifier).title)
      },
      "presences": presences.map {
        titled($0.propertyList, OwnTitles.title($0.name, .ownPresence))
      },
      "queues": queues.map { titled($0.propertyList, OwnTitles.queue($0.name)) },
    ])
  }
}

extension ContainerReport.NamedContent {
  fileprivate func propertyList(identifierKey: String) -> PropertyListValue {
    let (name, problem): (String, String?) =
      switch condition {
      case .absent: ("absent", nil)
      case .readable: ("readable", nil)
      case .unreadable(let error): ("unreadable", error.briefReason)
      case .notRead: ("notRead", nil)
      }
    return .object([
      identifierKey: identifier, "path": path, "condition": name, "problem": problem,
      "bytes": bytes, "modified": modified?.wholeSeconds, "kept": kept?.wholeSeconds,
      "state": state.map { PropertyListValue($0) }, "publisher": publisher?.propertyList,
      "expires": expiration?.wholeSeconds,
    ])
  }
}

extension ContainerReport.NamedPresence {
  fileprivate var propertyList: PropertyListValue {
    .object(["name": name, "path": path, "members": members.map(\.propertyList)])
  }
}

extension PresenceMember {
  var propertyList: PropertyListValue {
    .object([
      "id": id, "process": processID, "program": program, "state": state.rawValue,
      "since": since.wholeSeconds, "isExclusive": isExclusive, "content": content,
    ])
  }
}

extension ContainerReport.NamedQueue {
  var propertyList: PropertyListValue {
    .object([
      "name": name, "path": path, "waiting": waiting, "waitingBytes": waitingBytes,
      "oldest": oldest?.wholeSeconds, "delayed": delayed, "nextDue": nextDue?.wholeSeconds,
      "taken": taken, "consumer": consumer?.propertyList,
      "workers": PropertyListValue.array(workers.map(\.propertyList)), "outcomes": outcomes,
      "receipts": receipts,
      "failed": failed,
    ])
  }
}

extension ContainerReport.NamedLog {
  var propertyList: PropertyListValue {
    .object([
      "name": name, "path": path, "messages": messages, "bytes": bytes, "first": first,
      "last": last, "newest": newest?.wholeSeconds, "bounds": bounds.propertyList,
      "subscribers": PropertyListValue.array(subscribers.map(\.propertyList)),
      "problem": fault?.briefReason,
    ])
  }
}

extension ContainerReport.NamedLog.Reading {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "name": subscriber.name, "next": subscriber.next, "behind": subscriber.behind,
      "process": process?.propertyList,
    ])
  }
}

extension ContainerReport.HeldLease {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "identifier": identifier, "isOwn": kind.isOwn, "path": path, "process": holder.processID,
      "program": holder.program, "state": holder.state.rawValue,
      "heldSeconds": holder.held?.seconds, "termSeconds": term?.seconds,
      "overdue": overdue?.rawValue,
    ])
  }
}

extension ContainerReport.LooseEntry {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "path": path, "owner": Int(owner), "mode": String(permissions, radix: 8),
      "isForeign": isForeign,
    ])
  }
}

extension ContainerReport.WatchUse {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "watches": watches, "maximumWatches": maximumWatches, "instances": instances,
      "maximumInstances": maximumInstances, "refusal": refusal.map { "\($0)" },
    ])
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

extension ClusterReport {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "members": members.map { member in
        PropertyListValue.object([
          "endpoint": member.endpoint, "name": member.name, "version": member.version,
          "isLeader": member.isLeader, "revision": member.revision,
          "databaseBytes": member.databaseBytes, "usedBytes": member.usedBytes,
          "roundTripMilliseconds": member.roundTrip.map { $0 / .milliseconds(1) },
          "clockDifferenceSeconds": member.clockDifference.map(\.seconds),
          "watchMilliseconds": member.watchDelay.map { $0 / .milliseconds(1) },
          "watchFailure": member.watchFailure,
          "failure": member.failure, "isNamed": member.isNamed,
        ])
      },
      "hasLeader": hasLeader, "revision": revision, "oldestRevision": oldestRevision,
      "replacement": replacement.map {
        PropertyListValue.object([
          "date": $0.date.wholeSeconds, "known": $0.known, "found": $0.found, "host": $0.host,
        ])
      },
      "alarms": alarms, "user": user, "isEncrypted": isEncrypted,
      "lifetimeSeconds": lifetime.components.seconds,
    ])
  }
}
