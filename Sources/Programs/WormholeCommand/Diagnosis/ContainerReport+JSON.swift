import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists

/// The output of `status --json`. Keys are only ever added; a key with an unknown value is left out.
extension ContainerReport: JSONObject {
  var propertyList: PropertyListValue {
    .object([
      "container": path, "group": groupIdentifier, "formatVersion": formatVersion,
      "created": created?.wholeSeconds, "networkFileSystem": networkFileSystem,
      "values": names.values.map { $0.propertyList(identifierKey: "identifier") },
      "notifications": names.notifications.map { $0.propertyList(identifierKey: "name") },
      "presences": names.presences, "queues": names.queues, "logs": names.logs,
      "own": own.titledPropertyList,
      "leases": leases.map { lease in
        PropertyListValue.object([
          "identifier": lease.identifier, "isOwn": lease.kind.isOwn, "path": lease.path,
          "process": lease.holder.processID, "program": lease.holder.program,
          "state": lease.holder.state.rawValue, "heldSeconds": lease.holder.held?.seconds,
          "termSeconds": lease.term?.seconds, "overdue": lease.overdue?.rawValue,
        ])
      },
      "leftovers": leftovers.map {
        PropertyListValue.object(["kind": $0.kind.rawValue, "path": $0.path])
      },
      "quarantine": quarantine.map {
        PropertyListValue.object(["path": $0.path, "bytes": $0.bytes])
      },
      "foreignEntries": foreignEntries.map(\.path),
      "looseEntries": looseEntries.map { entry in
        PropertyListValue.object([
          "path": entry.path, "owner": Int(entry.owner),
          "mode": String(entry.permissions, radix: 8), "isForeign": entry.isForeign,
        ])
      },
      "watches": PropertyListValue.object([
        "watches": watches.watches, "maximumWatches": watches.maximumWatches,
        "instances": watches.instances, "maximumInstances": watches.maximumInstances,
        "refusal": watches.refusal.map { "\($0)" },
      ]),
      "cluster": cluster, "failures": failures.map { "\($0)" }, "isPartial": isPartial,
    ])
  }
}

extension ContainerReport.Names {
  /// The package's own names, each with its title.
  fileprivate var titledPropertyList: PropertyListValue {
    func titled(_ value: PropertyListValue, _ title: String) -> PropertyListValue {
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
      "state": state.map { PropertyListValue($0) }, "publisher": publisher,
      "expires": expiration?.wholeSeconds,
    ])
  }
}

extension ContainerReport.NamedPresence: JSONObject {
  var propertyList: PropertyListValue { .object(["name": name, "path": path, "members": members]) }
}

extension PresenceMember: JSONObject {
  var propertyList: PropertyListValue {
    .object([
      "id": id, "process": processID, "program": program, "state": state.rawValue,
      "since": since.wholeSeconds, "isExclusive": isExclusive, "content": content,
    ])
  }
}

extension ContainerReport.NamedQueue: JSONObject {
  var propertyList: PropertyListValue {
    .object([
      "name": name, "path": path, "waiting": waiting, "waitingBytes": waitingBytes,
      "oldest": oldest?.wholeSeconds, "delayed": delayed, "nextDue": nextDue?.wholeSeconds,
      "taken": taken, "consumer": consumer, "workers": workers, "outcomes": outcomes,
      "receipts": receipts, "failed": failed,
    ])
  }
}

extension ContainerReport.NamedLog: JSONObject {
  var propertyList: PropertyListValue {
    .object([
      "name": name, "path": path, "messages": messages, "bytes": bytes, "first": first,
      "last": last, "newest": newest?.wholeSeconds, "bounds": bounds,
      "subscribers": subscribers.map { reading in
        PropertyListValue.object([
          "name": reading.subscriber.name, "next": reading.subscriber.next,
          "behind": reading.subscriber.behind, "process": reading.process,
        ])
      },
      "problem": fault?.briefReason,
    ])
  }
}

extension ClusterReport: JSONObject {
  var propertyList: PropertyListValue {
    .object([
      "members": members.map { member in
        PropertyListValue.object([
          "endpoint": member.endpoint, "name": member.name, "version": member.version,
          "isLeader": member.isLeader, "revision": member.revision,
          "databaseBytes": member.databaseBytes, "usedBytes": member.usedBytes,
          "roundTripMilliseconds": member.roundTrip.map { $0 / .milliseconds(1) },
          "clockDifferenceSeconds": member.clockDifference.map(\.seconds),
          "watchMilliseconds": member.watchDelay.map { $0 / .milliseconds(1) },
          "watchFailure": member.watchFailure, "failure": member.failure, "isNamed": member.isNamed,
        ])
      },
      "hasLeader": hasLeader, "revision": revision, "oldestRevision": oldestRevision,
      "keys": keys, "leases": leases, "nested": nested,
      "replacement": replacement.map {
        PropertyListValue.object([
          "date": $0.date.wholeSeconds, "known": $0.known, "found": $0.found, "host": $0.host,
        ])
      },
      "certificates": certificates.map { certificate in
        PropertyListValue.object([
          "place": certificate.place, "end": certificate.end.wholeSeconds,
          "commonName": certificate.commonName, "isOwn": certificate.isOwn,
        ])
      },
      "alarms": alarms, "user": user, "isEncrypted": isEncrypted,
      "lifetimeSeconds": lifetime.components.seconds,
    ])
  }
}

extension Duration {
  var seconds: Double { self / .seconds(1) }
}

extension Date {
  /// A status shows no fractions of a second.
  var wholeSeconds: Date {
    Date(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate.rounded(.down))
  }
}
