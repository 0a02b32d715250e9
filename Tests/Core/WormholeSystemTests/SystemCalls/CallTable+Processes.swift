import Foundation
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

extension CallTable {
  static let locksAndEvents: [CallRow] = [
    CallRow(.flock, "true, then false") { bench in
      let file = try bench.file()
      let first = try bench.act { try file.tryLock(.exclusive) }
      return "\(first), then \(try bench.file().tryLock(.shared))"
    },
    CallRow(.inotifyInit, "false") { bench in
      // So that there is room for one.
      _ = try nextEventQueue()
      let queue = try bench.act { SharedDescriptor(try FileDescriptor.eventQueue()) }
      return String(try queue.descriptor.takeEvents { _, _ in })
    },
    CallRow(.inotifyAddWatch, "1") { bench in
      let queue = try nextEventQueue()
      _ = try bench.act { try queue.addWatch(bench.path, .created) }
      try bench.file().close()
      var count = 0
      _ = try queue.takeEvents { _, _ in count += 1 }
      return String(count)
    },
    CallRow(.inotifyRemoveWatch, "[true]") { bench in
      let queue = try nextEventQueue()
      let watch = try queue.addWatch(bench.path, .created)
      try bench.act { try queue.removeWatch(watch) }
      try bench.file().close()
      var events: [Bool] = []
      _ = try queue.takeEvents { events.append($1.contains(.ignored)) }
      return "\(events)"
    },
    CallRow(.poll, "[true]") { bench in
      let counter = try FileDescriptor.wakeUpCounter()
      try counter.raiseCounter()
      return "\(try bench.act { try waitReadable([counter.rawValue], until: .now) })"
    },
    CallRow(.eventfd, "[false]") { bench in
      let counter = try bench.act { SharedDescriptor(try FileDescriptor.wakeUpCounter()) }
      return "\(try waitReadable([counter.descriptor.rawValue], until: .now))"
    },
  ]

  static let processes: [CallRow] = [
    CallRow(.socket, "text") { bench in try datagram(bench, "\(bench.path)/socket") },
    CallRow(.connect, "text") { bench in
      try datagram(bench, "@wormhole-test-\(UInt64.random(in: .min ... .max))")
    },
    CallRow(.send, "text") { bench in
      let (sender, receiver) = try sockets(bench)
      try bench.act { try sender.descriptor.sendDatagram(Array("text".utf8)) }
      return try text(receiver.descriptor)
    },
    CallRow(.bind, "text") { bench in
      let path = bench.path + "/socket"
      let receiver = try bench.act {
        SharedDescriptor(try FileDescriptor.datagramSocket(receivingAt: path))
      }
      try FileDescriptor.sendDatagram(Array("text".utf8), toSocket: path)
      return try text(receiver.descriptor)
    },
    CallRow(.recv, "text") { bench in
      let (sender, receiver) = try sockets(bench)
      try sender.descriptor.sendDatagram(Array("text".utf8))
      return try bench.act { try text(receiver.descriptor) }
    },
    CallRow(.shutdown, "EPIPE") { bench in
      let (sender, receiver) = try sockets(bench)
      try bench.act { try receiver.descriptor.endReceiving() }
      do throws(Errno) {
        try sender.descriptor.sendDatagram(Array("text".utf8))
        return "sent"
      } catch {
        return error == .brokenPipe ? "EPIPE" : "\(error)"
      }
    },
    CallRow(.mmap, "0") { bench in
      let counter = try bench.act {
        try FileCounter(
          FileDescriptor.memoryFile(name: "test", content: FileCounter.initialContent))
      }
      return "\(try counter.value() ?? 1)"
    },
    CallRow(.memfdCreate, "text") { bench in
      let memory = try bench.act {
        SharedDescriptor(try FileDescriptor.memoryFile(name: "test", content: Array("text".utf8)))
      }
      let bytes = try memory.descriptor.readToEnd(expectedBytes: 4, maximumBytes: 100)
      return String(decoding: bytes, as: UTF8.self)
    },
    CallRow(.spawn, ended(7)) { bench in
      try bench.act { try describe(try ChildProcess("sh", ["-c", "exit 7"])) }
    },
    CallRow(.pidfdOpen, killed(9)) { bench in
      let file = try bench.file()
      let status = try file.status()
      let child = try ChildProcess("sleep", ["60"], inheriting: file.rawValue)
      defer { stop(child.processID) }
      try bench.act { _ = try endInheritors(of: status, until: .now + .seconds(30)) }
      return try describe(child)
    },
    CallRow(.waitid, ended(7)) { bench in
      try bench.act { try describe(try ChildProcess("sh", ["-c", "exit 7"])) }
    },
    CallRow(.pidfdSendSignal, killed(9)) { bench in
      let child = try ChildProcess("sleep", ["60"])
      defer { stop(child.processID) }
      try bench.act { try child.send(.kill) }
      return try describe(child)
    },
    CallRow(.kill, killed(9)) { bench in
      let child = try ChildProcess("sleep", ["60"])
      defer { stop(child.processID) }
      try bench.act { try Program.send(.kill, to: child.processID) }
      return try describe(child)
    },
    CallRow(.pipe, "through") { bench in
      let reader = try bench.act {
        let pipe = try makePipe()
        try pipe.write.writeAll(Array("through".utf8))
        return pipe.takeRead()
      }
      return text(try reader.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 100))
    },
    CallRow(.threadCreate, "[true]") { bench in
      let pipe = try makePipe()
      let number = pipe.write.rawValue
      try bench.act {
        try startThread(name: "test") {
          do { try Program.write([1], to: number) } catch { preconditionFailure("\(error)") }
        }
      }
      return "\(try waitReadable([pipe.read.rawValue], until: soon))"
    },
    CallRow(.terminalMode, "true") { bench in
      // The end of a pseudo-terminal that is a terminal, too (pty(7)).
      let root = SharedDescriptor(try FileDescriptor.open("/", [.readOnly, .directory]))
      let terminal = SharedDescriptor(
        try FileDescriptor.openBeneath("dev/ptmx", at: root.descriptor.rawValue, [.readOnly]))
      let number = terminal.descriptor.rawValue
      try bench.act { _ = try TerminalMode(keysAtOnceOn: number) }
      return withExtendedLifetime((root, terminal)) { "\(Program.isTerminal(number))" }
    },
  ]

  private static func sockets(
    _ bench: CallBench
  ) throws -> (sender: SharedDescriptor, receiver: SharedDescriptor) {
    let path = bench.path + "/socket"
    let receiver = SharedDescriptor(try .datagramSocket(receivingAt: path))
    return (SharedDescriptor(try .datagramSocket(to: path)), receiver)
  }

  private static func text(_ receiver: borrowing FileDescriptor) throws -> String {
    try receiver.receiveDatagram(maximumBytes: 100).map { String(decoding: $0, as: UTF8.self) }
      ?? "nothing"
  }

  private static func datagram(_ bench: CallBench, _ address: String) throws -> String {
    let receiver = try DatagramReceiver(at: address)
    try bench.act { try FileDescriptor.sendDatagram(Array("text".utf8), toSocket: address) }
    return try receiver.next(until: .now) ?? "nothing"
  }

  private static func ended(_ status: Int32) -> String { "\(Termination.exited(status))" }
  private static func killed(_ signal: Int32) -> String { "\(Termination.killed(signal: signal))" }

  private static func describe(_ child: borrowing ChildProcess) throws -> String {
    defer { stop(child.processID) }
    return try child.wait(until: soon).map { "\($0)" } ?? "still runs"
  }

  // Ends a child whose row failed on purpose; it is reaped when its value is released.
  private static func stop(_ processID: Int32) {
    kill(processID, SIGKILL)
  }
}
