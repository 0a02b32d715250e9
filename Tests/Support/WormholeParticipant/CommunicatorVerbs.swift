import Communicator
import Foundation
import Synchronization
import WatchConnectivity

/// The verbs of a participant as an app that uses Communicator; the environment selects its side.
///
/// ```
/// communicator-observe KIND          begins to record the values for observers of KIND: immediate,
///                                    interactive (replied to with its content), silent
///                                    (interactive, never replied to), guaranteed, blob, context,
///                                    complication, finished, reachability, state, watch, phone
/// communicator-heard KIND            the recorded values, and under "replies", "errors" and
///                                    "completions" the arguments of handlers
/// communicator-now KIND              state, reachability, watch, phone, sent or received as it is now
/// communicator-immediate ID N        sends; so with interactive, guaranteed, context, complication
/// communicator-blob ID SIZE          transfers a blob of that many bytes, each the first of ID
/// communicator-expiring ID MS        sends a guaranteed message with the key ID; 0: never expires
/// communicator-expiring-blob ID MS   transfers a blob that expires
/// communicator-large ID LENGTH       sends a guaranteed message with a text of that length
/// communicator-cancel ID             cancels the transfer of ID; answers whether it exists
/// communicator-raw MANNER            acts as a session of another app, which replies
///                                    "malformed" to everything
/// communicator-raw-send N            sends a dictionary, as a message with a reply handler
/// ```
enum CommunicatorVerbs {
  private static let heard = Mutex<[String: [String]]>([:])
  private static let transfers = Mutex<[String: any Cancellable]>([:])

  static func perform(_ verb: Substring, _ first: String, _ second: String?) throws -> String {
    let content: Content = ["n": second.flatMap { Int($0) } ?? 0]
    let communicator = { Communicator.shared }
    switch verb {
    case "observe": observe(first)
    case "heard": return heard.withLock { $0[first] ?? [] }.joined(separator: " ")
    case "now": return now(first)
    case "immediate":
      communicator().send(ImmediateMessage(identifier: first, content: content), errorHandler: fail)
    case "interactive":
      let message = InteractiveImmediateMessage(identifier: first, content: content) { reply in
        note("replies", "\(reply.identifier)=\(number(reply.content))")
      }
      communicator().send(message, errorHandler: fail)
    case "guaranteed":
      let message = GuaranteedMessage(identifier: first, content: content)
      keep(communicator().send(message) { complete(first, $0) }, first)
    case "expiring":
      let message = GuaranteedMessage(identifier: first, content: content)
      let time = second.flatMap { Int($0) }.flatMap { $0 > 0 ? Duration.milliseconds($0) : nil }
      keep(
        communicator().send(message, expiresAfter: time, key: first) { complete(first, $0) }, first)
    case "expiring-blob":
      let blob = Blob(identifier: first, content: Data(count: 10))
      let time = Duration.milliseconds(second.flatMap { Int($0) } ?? 0)
      keep(communicator().transfer(blob, expiresAfter: time) { complete(first, $0) }, first)
    case "blob":
      let blob = Blob(
        identifier: first,
        content: Data(repeating: first.utf8.first ?? 0, count: second.flatMap { Int($0) } ?? 0),
        metadata: ["size": second ?? ""])
      keep(communicator().transfer(blob) { complete(first, $0) }, first)
    case "large":
      let text = String(repeating: "x", count: second.flatMap { Int($0) } ?? 0)
      let message = GuaranteedMessage(identifier: first, content: ["text": text])
      keep(communicator().send(message) { complete(first, $0) }, first)
    case "complication":
      keep(
        communicator().transfer(ComplicationInfo(content: content)) { result in
          switch result {
          case .success(let count): note("completions", "\(first)=\(count)")
          case .failure(let error): fail(error)
          }
        }, first)
    case "context": try communicator().sync(Context(content: content))
    case "cancel":
      guard let transfer = transfers.withLock({ $0[first] }) else { return "none" }
      transfer.cancel()
    default: return RawCounterpart.perform(verb, first)
    }
    return "done"
  }

  static func note(_ kind: String, _ entry: String) {
    heard.withLock { $0[kind, default: []].append(entry) }
  }

  private static func number(_ content: Content) -> String {
    content["n"].map { "\($0)" } ?? "nothing"
  }

  @Sendable static func fail(_ error: any Error) { note("errors", name(of: error)) }

  private static func name(of error: any Error) -> String {
    switch error {
    case Communicator.Error.sessionIsNotReachable(let minimum, let actual): "\(minimum)>\(actual)"
    case let error as WCError: "\(error.code)"
    default: "\(type(of: error))"
    }
  }

  private static func complete(_ identifier: String, _ result: Result<Void, any Error>) {
    note("completions", "\(identifier)=\(outcome(result))")
  }

  private static func outcome(_ result: Result<Void, any Error>) -> String {
    switch result {
    case .success: "done"
    case .failure(let error): name(of: error)
    }
  }

  private static func keep(_ transfer: (any Cancellable)?, _ identifier: String) {
    transfers.withLock { $0[identifier] = transfer }
  }

  private static func observe(_ kind: String) {
    switch kind {
    case "immediate":
      ImmediateMessage.observe { note(kind, "\($0.identifier)=\(number($0.content))") }
    case "interactive":
      InteractiveImmediateMessage.observe { message in
        note(kind, "\(message.identifier)=\(number(message.content))")
        message.reply(ImmediateMessage(identifier: "re", content: message.content))
      }
    case "silent":
      InteractiveImmediateMessage.observe { note(kind, $0.identifier) }
    case "guaranteed":
      GuaranteedMessage.observe { note(kind, "\($0.identifier)=\(number($0.content))") }
    case "blob":
      Blob.observe { blob in
        let bytes = Set(blob.content).map { String(UnicodeScalar($0)) }.joined()
        note(
          kind,
          "\(blob.identifier):\(bytes)*\(blob.content.count)/\(blob.metadata?["size"] ?? "")")
      }
    case "context": Context.observe { note(kind, number($0.content)) }
    case "complication": ComplicationInfo.observe { note(kind, number($0.content)) }
    case "finished":
      FinishedTransfer.observe {
        note(kind, "\($0.kind):\($0.identifier)=\(outcome($0.result))")
      }
    case "reachability": Reachability.observe { note(kind, "\($0)") }
    case "state": Communicator.State.observe { note(kind, "\($0)") }
    case "watch": WatchState.observe { note(kind, words($0)) }
    default: PhoneState.observe { note(kind, words($0)) }
    }
  }

  private static func now(_ kind: String) -> String {
    let communicator = Communicator.shared
    return switch kind {
    case "state": "\(communicator.currentState)"
    case "reachability": "\(communicator.currentReachability)"
    case "watch": words(communicator.currentWatchState)
    case "phone": words(communicator.currentPhoneState)
    case "sent": number(communicator.mostRecentlySentContext.content)
    default: number(communicator.mostRecentlyReceivedContext.content)
    }
  }

  private static func words(_ state: WatchState) -> String {
    switch state {
    case .notPaired: "notPaired"
    case .paired(.notInstalled): "notInstalled"
    case .paired(.installed(.notEnabled, _)): "installed"
    case .paired(.installed(.enabled(let count), let url)):
      "enabled:\(count)" + (url == nil ? "" : ":url")
    }
  }

  private static func words(_ state: PhoneState) -> String {
    switch state {
    case .notPaired: "notPaired"
    case .paired(let app): "\(app)"
    }
  }
}

/// Code on the other side that does not use Communicator but exchanges messages with it.
private final class RawCounterpart: NSObject, WCSessionDelegate, Sendable {
  private static let shared = RawCounterpart()

  static func perform(_ verb: Substring, _ first: String) -> String {
    let session = WCSession.default
    switch verb {
    case "raw":
      session.delegate = shared
      session.activate()
    case "raw-send":
      session.sendMessage(
        ["n": first],
        replyHandler: { _ in CommunicatorVerbs.note("replies", "raw") },
        errorHandler: CommunicatorVerbs.fail)
    default: return "error usage"
    }
    return "done"
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    CommunicatorVerbs.note("raw", "\(activationState)")
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    replyHandler(["nonsense": 1])
  }
}
