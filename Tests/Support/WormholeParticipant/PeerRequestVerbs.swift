import Dispatch
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about requests, as the peer of a name.
///
/// ```
/// peer-activate NAME [SECONDS]         becomes active within SECONDS
/// peer-crowd PREFIX COUNT              COUNT peers become active, PREFIX0 …; they echo
/// peer-handle NAME MANNER              handles requests: echo, fail, hold, forget, refuse, or
///                                      slow (a task that waits until it is cancelled)
/// peer-release NAME                    replies to all that are held; answers the number of successes
/// peer-held NAME                       "VALUE:cancelled" or "VALUE:waiting" of each, in order
/// peer-request NAME PEER NUMBER [SECONDS]  sends a request; answers the reply
/// peer-burst NAME PEER COUNT SECONDS   sends COUNT requests at once; answers "COUNT CODE…"
/// peer-begin NAME PEER NUMBER SECONDS  sends a request without waiting
/// peer-is-active NAME                  "true" or "false"
/// peer-close NAME                      closes the session
/// ```
enum PeerRequestVerbs {
  private struct Kept {
    var sessions: [String: PeerSession] = [:]
    var held: [String: [PeerRequest]] = [:]
  }

  private static let kept = Mutex(Kept())
  private static let queue = DispatchQueue(label: "requests")

  static func perform(
    _ verb: String, _ name: String, _ rest: [String], _ container: SharedContainer
  ) throws -> String {
    do {
      return try act(verb, name, rest, container)
    } catch let error as WormholeError {
      return "error \(error.code.rawValue) \(error)"
    }
  }

  private static func act(
    _ verb: String, _ name: String, _ rest: [String], _ container: SharedContainer
  ) throws -> String {
    if verb == "peer-crowd" { return try crowd(name, Int(rest[0]) ?? 0, container) }
    let session = try session(name, container)
    switch verb {
    case "peer-activate":
      try session.activate(until: .now + .seconds(rest.first.flatMap { Double($0) } ?? 10))
    case "peer-handle": handle(session, rest[0])
    case "peer-release":
      let held = kept.withLock { $0.held.removeValue(forKey: name) } ?? []
      return "\(try held.filter { try $0.reply($0.value) }.count)"
    case "peer-held":
      return kept.withLock { $0.held[name] ?? [] }.map {
        "\($0.value.intValue ?? -1):\($0.isCancelled ? "cancelled" : "waiting")"
      }.joined(separator: " ")
    case "peer-request":
      let reply = try session.request(
        PropertyListValue(Int(rest[1]) ?? 0), to: rest[0],
        until: .now + .seconds(rest.dropFirst(2).first.flatMap { Double($0) } ?? 10))
      return "\(reply.intValue ?? -1)"
    case "peer-burst": return burst(session, rest[0], Int(rest[1]) ?? 0, Double(rest[2]) ?? 10)
    case "peer-begin":
      session.request(
        PropertyListValue(Int(rest[1]) ?? 0), to: rest[0],
        until: .now + .seconds(Double(rest[2]) ?? 10)
      ) { _ in }
    case "peer-is-active": return "\(session.isActive)"
    case "peer-close": session.close()
    default: return "error usage"
    }
    return "done"
  }

  private static func session(_ name: String, _ container: SharedContainer) throws -> PeerSession {
    try kept.withLock { kept in
      if let session = kept.sessions[name] { return session }
      let session = try PeerSession(name, in: container)
      kept.sessions[name] = session
      return session
    }
  }

  private static func crowd(
    _ prefix: String, _ count: Int, _ container: SharedContainer
  ) throws -> String {
    for number in 0..<count {
      let session = try session("\(prefix)\(number)", container)
      handle(session, "echo")
      try session.activate()
    }
    return "done"
  }

  private static func handle(_ session: PeerSession, _ manner: String) {
    let name = session.name
    switch manner {
    case "refuse": session.refuseRequests()
    case "slow":
      session.handleRequests { _ in
        try await Task.sleep(for: .seconds(600))
        return 0
      }
    case "fail":
      session.handleRequests { _ in throw Refusal() }
    default:
      session.handleRequests(on: queue) { request in
        do {
          switch manner {
          case "echo": try request.reply(request.value)
          case "hold": kept.withLock { $0.held[name, default: []].append(request) }
          default: return
          }
        } catch {
          print("error \(error)")
        }
      }
    }
  }

  private struct Refusal: Error, CustomStringConvertible { let description = "on purpose" }

  /// Returns the number of each outcome, by its code; "reply" for replies.
  private static func burst(
    _ session: PeerSession, _ peer: String, _ count: Int, _ seconds: Double
  ) -> String {
    let ends = Mutex<[String: Int]>([:])
    let group = DispatchGroup()
    for number in 0..<count {
      group.enter()
      session.request(PropertyListValue(number), to: peer, until: .now + .seconds(seconds)) {
        result in
        let end =
          switch result {
          case .success(let value): value.intValue == number ? "reply" : "another's"
          case .failure(let error): error.code.rawValue
          }
        ends.withLock { $0[end, default: 0] += 1 }
        group.leave()
      }
    }
    group.wait()
    return ends.withLock { ends in
      ends.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: " ")
    }
  }
}
