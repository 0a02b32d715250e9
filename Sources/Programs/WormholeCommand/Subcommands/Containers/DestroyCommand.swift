import Wormhole
import WormholeInspection

extension CommandDescription {
  static let destroy = CommandDescription(
    name: "destroy",
    abstract: "Remove the container with everything in it.",
    discussion: """
      Messages, defaults, queues, logs and all else that the package keeps are removed and cannot be \
      brought back; 'copy' makes a copy before. The files that programs keep in the directory beside that \
      stay, unless --files is given. A directory that belongs to a group is removed if nothing is left in \
      it. On etcd all keys below the prefix are removed, and this machine's directory of the container, \
      but not those of other machines.

      At a terminal the command asks first; elsewhere it needs --yes. While a process is present in the \
      container, or takes from a queue, the command is refused with its name and exit status 1, unless \
      --in-use is given. Processes that only read and write messages are not seen; the next one that \
      writes makes a new container.
      """,
    options: [
      .yes, .flag("in-use", help: "Remove the container although processes use it."),
      .flag("files", help: "Remove also the files that programs keep beside it."),
    ]
  ) { arguments, environment in
    let path = try arguments.container.path()
    guard let container = try arguments.container.openExisting() else {
      throw CommandError(
        verb: "destroy", object: path, reason: "it is no container", status: .no)
    }
    try arguments.confirm("Remove \(path) with everything in it?", environment)
    var removal = ContainerRemoval(of: container)
    removal.allowsUse = arguments.has("in-use")
    removal.removesFiles = arguments.has("files")
    do {
      let left = try removal.run()
      if !left.isEmpty {
        let names = left.prefix(5).joined(separator: ", ") + (left.count > 5 ? ", ..." : "")
        environment.tell("left in \(path): \(names); --files removes that, too")
      }
    } catch let error as AppGroupError where error.code == .timedOut {
      throw CommandError(
        verb: "destroy", object: path,
        reason: "\(error.reason); end it first, or give --in-use", status: .no)
    }
  }
}
