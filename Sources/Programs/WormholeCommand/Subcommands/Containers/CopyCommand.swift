import Wormhole
import WormholeInspection
import WormholePeers

extension CommandDescription {
  static let copy = CommandDescription(
    name: "copy",
    abstract: "Copy the container to another place, a directory or etcd: complete, or not at all.",
    discussion: """
      Messages, defaults, queues with their files, receipts and failures, and what the group keeps \
      beside them are copied; logs only to a directory. Not copied is what is tied to processes that \
      run now, and how peers are launched, which is to be \
      registered again. What is delivered at \
      this moment is delivered again there, marked. The original stays as it is.

      A process that goes on with the original would change it without changing the copy. So while one \
      is present in the container, the copy is refused with its name, unless --in-use is given; then \
      the copy is as the container was at one moment. While processes change it faster than it can be \
      read, their changes wait for a moment. Processes that only read and write messages are not seen.
      """,
    positionals: [
      PositionalDescription(
        name: "place",
        help: "A directory that does not exist or is empty, or 'etcd://host/prefix'.",
        kind: .directory)
    ],
    options: [
      .flag("in-use", help: "Copy although processes use the container."),
      .value(
        "timeout", "seconds", .seconds,
        help: "How long it may take; by default as long as it needs."),
      .json,
    ]
  ) { arguments, environment in
    let place = arguments.requiredText("place")
    guard let container = try arguments.container.openExisting() else {
      throw CommandError(
        verb: "copy", object: try arguments.container.path(), reason: "it is no container yet",
        status: .no)
    }
    var copy = ContainerCopy(of: container)
    copy.allowsUse = arguments.has("in-use")
    copy.leavesOut = { PeerNames.isLaunch($0) }
    copy.progress = environment.partsProgress
    defer { environment.showProgress(nil) }
    let done = try copy.run(to: place, until: arguments.deadline())
    if arguments.has("json") {
      try environment.print(
        json: .object(["parts": done.keys, "bytes": done.bytes, "files": done.items]))
    } else {
      environment.tell(
        "copied \(done.keys) parts, \(done.bytes) bytes, to \(EtcdLocation.withoutPassword(place))")
    }
  }
}

extension CommandEnvironment {
  /// Shows people at a terminal how far a copy is.
  var partsProgress: (_ parts: Int, _ bytes: Int) -> Void {
    { parts, bytes in
      if parts % 100 == 0 { showProgress("\(parts) parts, \(bytes >> 20) MiB") }
    }
  }
}
