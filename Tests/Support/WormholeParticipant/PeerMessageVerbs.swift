import Dispatch
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about guaranteed messages, as a peer of a name.
///
/// ```
/// message-send ME PEER FIRST COUNT LOG  sends numbers; notes each in the log once it is stored
/// message-cancel ME ID                  cancels; answers "true" or "false"
/// message-receive ME [SECONDS]          becomes the receiver within SECONDS
/// message-next ME                       takes a message and keeps it: "SENDER NUMBER [again]"
/// message-acknowledge ME                acknowledges the last taken message
/// message-handle ME LOG                 receives; notes each message in the log as above when it is
///                                       handled, and "ended CODE" when receiving ends
/// message-work ME LOG                   the same until none waits
/// message-end ME                        ends receiving
/// context-set ME PEER NUMBER            sets the context for a peer
/// context-observe ME PEER LOG           notes the contexts of a peer
/// ```
enum PeerMessageVerbs {
  private struct Kept {
    var receivers: [String: PeerReceiver<PeerMessage>] = [:]
    var messages: [String: PeerMessage] = [:]
    var observations: [ObservationToken] = []
  }

  private static let kept = Mutex(Kept())

  static func perform(_ verb: String, _ session: PeerSession, _ rest: [String]) throws -> String {
    let name = session.name
    switch verb {
    case "message-send":
      guard let first = Int(rest[1]), let count = Int(rest[2]) else { return "error usage" }
      for number in first..<(first + count) {
        try session.enqueue(PropertyListValue(number), to: rest[0])
        try note("\(number)", in: rest[3])
      }
    case "message-cancel": return "\(try session.messageTransfer(id: rest[0])?.cancel() ?? false)"
    case "message-receive":
      let wait = Duration.seconds(rest.first.flatMap { Int($0) } ?? 0)
      let receiver = try session.receiveMessages(until: .now + wait)
      kept.withLock { $0.receivers[name] = receiver }
    case "message-next":
      guard let message = try kept.withLock({ $0.receivers[name] })?.next(until: .now) else {
        return "nothing"
      }
      kept.withLock { $0.messages[name] = message }
      return describe(message)
    case "message-acknowledge": try kept.withLock { $0.messages[name] }?.acknowledge()
    case "message-handle":
      let log = rest[0]
      let receiver = try session.receiveMessages(until: .now + .seconds(5))
      kept.withLock { $0.receivers[name] = receiver }
      receiver.handle(
        on: DispatchQueue(label: name), failure: { ended($0, in: log) },
        { try note(describe($0), in: log) })
    case "message-work":
      let receiver = try session.receiveMessages(until: .now + .seconds(5))
      while let message = try receiver.next(until: .now) {
        try note(describe(message), in: rest[0])
        try message.acknowledge()
      }
    case "message-end": kept.withLock { $0.receivers.removeValue(forKey: name) }?.close()
    case "context-set": try session.setContext(PropertyListValue(Int(rest[1]) ?? -1), for: rest[0])
    case "context-observe":
      let (peer, log) = (rest[0], rest[1])
      let observation = try session.observeContext(
        from: peer, on: DispatchQueue(label: name)
      ) { context in
        do {
          try note("\(context.get().intValue ?? -1)", in: log)
        } catch {
          ended(error, in: log)
        }
      }
      kept.withLock { $0.observations.append(observation) }
    default: return "error usage"
    }
    return "done"
  }

  private static func describe(_ message: PeerMessage) -> String {
    let number = message.value.intValue.map(String.init) ?? "?"
    return "\(message.sender) \(number)" + (message.isRedelivery ? " again" : "")
  }

  private static func ended(_ error: any Error, in log: String) {
    let code = (error as? WormholeError)?.code.rawValue ?? "\(error)"
    do {
      try note("ended \(code)", in: log)
    } catch {
      preconditionFailure("cannot note it: \(error)")
    }
  }

  private static func note(_ line: String, in log: String) throws {
    try FileDescriptor.open(log, [.writeOnly, .create, .append]).writeAll(Array((line + "\n").utf8))
  }
}
