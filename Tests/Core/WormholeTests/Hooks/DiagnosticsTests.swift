import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("A program's log and metrics", .blocking)
struct DiagnosticsTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try directory.container().value("k").replace(with: 0)
  }

  private func participant() throws -> Participant { try Participant(directory.path) }

  private func observer() throws -> Participant {
    let observer = try participant()
    #expect(try observer.ask("events begin") == "done")
    return observer
  }

  /// A process that has begun something, and is stopped.
  private func stopped(_ command: String, _ answer: String = "holding") throws -> Participant {
    let other = try participant()
    #expect(try other.ask(command).hasPrefix(answer))
    try other.send(.stop)
    try other.waitUntilStopped()
    return other
  }

  private func expect(
    _ answer: String, begins prefix: String, has parts: [String],
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(answer.hasPrefix(prefix), sourceLocation: sourceLocation)
    for part in parts {
      #expect(answer.contains(part), "\(answer)", sourceLocation: sourceLocation)
    }
  }

  @Test("have the lease that is taken over from a stopped process, and the wait for it")
  func takeover() throws {
    let observer = try observer()
    let holder = try stopped("long k 1")
    #expect(try observer.ask("set k 5") == "done")
    expect(
      try observer.ask("events takeover"), begins: "1 notice container=\(directory.path) ",
      has: ["from=process \(holder.processID) (participant)", "state=stopped", "what=lease"])
    #expect(try observer.ask("measured takeover") == "1 state=stopped what=lease")
    expect(
      try observer.ask("events wait"), begins: "1 debug container=\(directory.path) ",
      has: ["outcome=done", "path=\(directory.path)/values/k/", "seconds=0.", "what=lease"])
    #expect(try observer.ask("measured wait") == "1 outcome=done what=lease timed")
  }

  @Test("have the change that begins again after its lease was taken over")
  func retry() throws {
    let observer = try observer()
    #expect(try observer.ask("hold k 1") == "holding")
    try observer.send(.stop)
    try observer.waitUntilStopped()
    #expect(try participant().ask("set k 5") == "done")
    try observer.send(.continue)
    #expect(try observer.ask("go") == "holding")
    #expect(try observer.ask("go") == "done")
    expect(
      try observer.ask("events retry"), begins: "1 notice container=\(directory.path) ",
      has: ["path=\(directory.path)/values/k/", "what=lease"])
    #expect(try observer.ask("measured retry") == "1 what=lease")
  }

  @Test("have a wait for a process that is at work, and how it ended")
  func wait() throws {
    let (observer, holder) = (try observer(), try participant())
    // If it gets the lease in its last tries, after it has begun to watch it, that was no wait.
    try eventually("it has waited") {
      #expect(try holder.ask("long k 1") == "holding")
      try observer.tell("set k 7")
      try eventually("it waits") { try observer.waitsForLease(of: "k", in: directory) }
      #expect(try holder.ask("go") == "done")
      #expect(try observer.answer() == "done")
      return try observer.ask("measured wait") == "1 outcome=done what=lease timed"
    }
    #expect(try observer.ask("events takeover") == "0")
    #expect(try holder.ask("peer-activate watch") == "done")
    #expect(try observer.ask("peer-activate watch 0.2").hasPrefix("error replaced"))
    #expect(try observer.ask("measured wait") == "2 outcome=timedOut what=role timed")
  }

  @Test("have the damaged file that is put aside")
  func quarantine() throws {
    let observer = try observer()
    let log = directory.path + "/log"
    #expect(try participant().ask("queue-send q s 1 2 \(log)") == "done")
    let pending = try FileDescriptor.open(
      directory.path + "/queues/q/pending", [.readOnly, .directory]
    ).entries().map(\.name.text).sorted()
    try FileDescriptor.open(
      directory.path + "/queues/q/pending/" + pending[0], [.writeOnly, .truncate]
    ).writeAll(Array("bplist00 no".utf8))
    #expect(try observer.ask("queue-consume q") == "done")
    #expect(try observer.ask("queue-next q") == "s 2")
    expect(
      try observer.ask("events quarantine"), begins: "1 warning container=\(directory.path) ",
      has: ["from=\(pending[0])", "path=\(directory.path)/quarantine/"])
    #expect(try observer.ask("measured quarantine") == "1 ")
  }

  @Test("have the death of a peer, and the role that is taken over from a stopped one")
  func reachability() throws {
    let observer = try observer()
    let peer = try participant()
    #expect(try observer.ask("events peer phone watch") == "done")
    #expect(try peer.ask("peer-activate watch") == "done")
    try eventually("it has come") {
      try observer.ask("measured reachability") == "1 state=reachable"
    }
    try peer.end()
    try eventually("it has died") {
      try observer.ask("measured reachability") == "2 state=gone"
    }
    expect(
      try observer.ask("events reachability"), begins: "2 info container=\(directory.path) ",
      has: ["peer=watch", "reason=process \(peer.processID) (participant) has ended"])
    let next = try stopped("peer-activate watch", "done")
    #expect(try observer.ask("peer-activate watch") == "done")
    expect(
      try observer.ask("events takeover"), begins: "1 notice container=\(directory.path) ",
      has: ["from=process \(next.processID) (participant)", "state=stopped", "what=role"])
  }

  @Test("have the deliveries of a queue, and those that are not the first")
  func deliveries() throws {
    let (observer, killed) = (try observer(), try participant())
    #expect(try killed.ask("queue-send q s 1 2 \(directory.path)/log") == "done")
    #expect(try killed.ask("queue-consume q") == "done")
    #expect(try killed.ask("queue-next q") == "s 1")
    try killed.end()
    #expect(try observer.ask("queue-consume q 10") == "done")
    #expect(try observer.ask("queue-next q") == "s 1 again")
    expect(
      try observer.ask("events redelivery"),
      begins: "1 info attempt=2 container=\(directory.path) ", has: ["queue=q"])
    #expect(try observer.ask("queue-next q") == "s 2")
    #expect(try observer.ask("measured redelivery") == "1 ")
    #expect(try observer.ask("measured delivery") == "1 ")
    #expect(try observer.ask("events delivery") == "0")
  }

  @Test("have the access to a file that is taken over, and the wait for it")
  func files() throws {
    let observer = try observer()
    let file = directory.path + "/f"
    let holder = try stopped("writing \(file)", "inside")
    #expect(try observer.ask("writing \(file) put=x") == "done")
    expect(
      try observer.ask("events takeover"), begins: "1 notice ",
      has: ["from=process \(holder.processID)", "path=\(file)", "state=stopped", "what=file"])
    #expect(try observer.ask("measured wait file") == "1 outcome=done what=file timed")
  }

  @Test("cost nothing as long as nobody wants them, and every error is an event then")
  func unset() throws {
    let observer = try observer()
    #expect(try observer.ask("events flood 3") == "done")
    #expect(try observer.ask("events failure") == "3 error ")
    #expect(try observer.ask("measured failure") == "3 ")
    #expect(try observer.ask("events none") == "0", "no message is composed for nobody")
    #expect(try observer.ask("events failure") == "3 error ")
  }

  @Test("hold nothing up: a handler that blocks, or uses the library, is in nobody's way")
  func blocked() throws {
    let observer = try observer()
    #expect(try observer.ask("events block") == "done")
    #expect(try observer.ask("events flood 10100") == "done")
    let holder = try stopped("long k 1")
    #expect(try observer.ask("set k 5") == "done", "takes the lease over meanwhile")
    #expect(try observer.ask("read k") == "5")
    #expect(try observer.ask("events release") == "done")
    expect(try observer.ask("events dropped"), begins: "1 warning count=", has: [])
    #expect(try observer.ask("events takeover") == "0", "it was dropped")
    #expect(try observer.ask("events reenter k") == "done")
    #expect(try observer.ask("events flood 1") == "done")
    #expect(try observer.ask("read k") == "\"failure\"")
    withExtendedLifetime(holder) {}
  }

  @Test("are the only reports: without a handler the library prints nothing, whatever happens")
  func silence() throws {
    let output = directory.path + "/output"
    let silent = try Participant(
      program: "sh",
      ["-c", "exec '\(try BuiltProgram.path("participant"))' '\(directory.path)' 2>'\(output)'"],
      environment: ["PARTICIPANT_WITHOUT_HANDLER=1"])
    let holder = try stopped("long k 1")
    #expect(try silent.ask("hold k 5") == "holding")
    try silent.send(.stop)
    try silent.waitUntilStopped()
    #expect(try participant().ask("set k 7") == "done")
    try silent.send(.continue)
    #expect(try silent.ask("go") == "holding")
    #expect(try silent.ask("go") == "done")
    #expect(try silent.ask("events flood 3") == "done")
    #expect(try silent.ask("session-observe-others") == "done")
    #expect(try silent.ask("queue-consume q") == "done")
    #expect(try silent.ask("peer-activate watch") == "done")
    try silent.send(.terminate)
    _ = try silent.wait()
    #expect(try fileStatus(output).size == 0)
    withExtendedLifetime(holder) {}
  }
}
