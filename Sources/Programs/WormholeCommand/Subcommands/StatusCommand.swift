import AppGroup
import PeerConnectivity
import PropertyLists

extension CommandDescription {
  static let status = CommandDescription(
    name: "status",
    abstract: "Show the content of the container, the processes present and the leases held.",
    discussion: "It only reads: nothing changes, and no process is disturbed.",
    options: [.json]
  ) { arguments, environment in
    guard let container = try arguments.container.openExisting() else {
      let path = try arguments.container.path()
      return try environment.print(
        line: arguments.has("json")
          ? JSONWriter.string(.object(["container": path]))
          : "\(path)\n  no container yet; the first message makes one")
    }
    let report = try ContainerReport.complete(on: container)
    let peers = peers(in: container, environment).map { PeerWork($0, in: report) }
    if arguments.has("json") {
      var line = report.propertyList
      line["peers"] = .array(peers.map(\.propertyList))
      line["failed"] = .array(report.own.queues.flatMap(\.peerFailures).map(\.propertyList))
      try environment.print(json: line)
    } else {
      let text = StatusText(
        report: report, peers: peers, columns: environment.columns,
        tableColumns: environment.tableColumns)
      try environment.print(text.rendered)
    }
  }

  static let groups = CommandDescription(
    name: "groups",
    abstract: "Print the groups that have a container, one line each.",
    discussion: """
      The first write to a group makes its container, in $XDG_DATA_HOME/app-groups, by default \
      ~/.local/share/app-groups. Containers that are named by a directory are not listed. With --json \
      a line is {"container": ..., "group": ...}.
      """,
    options: [
      .flag("json", help: "Print a line of JSON for each group instead of its name alone.")
    ],
    needsContainer: false
  ) { arguments, environment in
    for (group, path) in try ContainerLocation.groups() {
      try environment.print(
        line: arguments.has("json")
          ? JSONWriter.string(.object(["container": path, "group": group]))
          : group.onOneLine)
    }
  }
}

/// Empty if they cannot be read: that hides nothing else.
private func peers(in container: SharedContainer, _ environment: CommandEnvironment) -> [Peer] {
  do {
    return try PeerSession(PeerSession.standardName, in: container).peers()
  } catch {
    environment.tell(error)
    return []
  }
}

extension PeerFailure {
  /// Keys are only ever added.
  fileprivate var propertyList: PropertyListValue {
    let (message, name, size): (PropertyListValue?, String?, Int64?) =
      switch content {
      case .message(let value): (value, nil, nil)
      case .file(let name, let size): (nil, name, size)
      }
    return .object([
      "id": id, "peer": peer, "sender": sender, "reason": reason, "date": date,
      "message": message, "name": name, "size": size,
    ])
  }
}
