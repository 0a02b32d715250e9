import Wormhole
import WormholePeers

extension CommandDescription {
  static let peerLaunchAgent = CommandDescription(
    name: "agent",
    abstract: "Start registered peers when other machines need them; for a container on etcd.",
    discussion: """
      A registration stays on its machine. In a directory each process that needs the peer starts it; on \
      etcd so does each process of this machine, and this program for those of other machines. It runs \
      only what is registered here, with its occasions and its budget, and only while no process is \
      active under the name. Failures are reported on standard error, and to the process that waits.

      Without a name it starts all peers that are registered here when it begins. It prints 'listening' \
      on standard error once it can be asked, and runs until it gets SIGTERM or SIGINT. An example of a \
      systemd unit, wormhole-agent.service, comes with the packages.
      """,
    arguments: [
      .list("name", .live(.peer), isOptional: true, help: "The name of a registered peer."),
      .readyDescriptor,
    ]
  ) { arguments, environment in
    let container = try arguments.container.open()
    let given = arguments.texts("name")
    let names = try given.isEmpty ? PeerLaunch.Registry(in: container).peers() : given
    guard !names.isEmpty else {
      throw CommandError.no("start peers", because: "none is registered on this machine")
    }
    let interruption = try Interruption()
    let agent = try PeerLaunch.Agent(for: names, in: container) { environment.report($0) }
    defer { agent.close() }
    environment.reportListening(endsWithReader: false)
    try interruption.waitForEnd()
  }
}
