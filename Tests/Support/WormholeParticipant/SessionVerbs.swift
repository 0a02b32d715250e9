import Foundation
import Synchronization
import WatchConnectivity
import Wormhole
import WormholeCinemaTutorial
import WormholeTestSupport
import WormholeWatchClients

/// The verbs of a participant as a phone or a watch.
///
/// ```
/// session-start ROLE WATCH MANNER [SECONDS]  activates; MANNER as in `SessionManner` or
///                                            `SessionDoubt`, SECONDS for
///                                            replies; answers "activated" or the error's code
/// session-environment                        the same, as the environment says
/// session-activate                           activates again; answers at once
/// session-await TEXT…                        waits for the first event that begins with TEXT
/// session-events                             all events that were not awaited, with "; " between them
/// session-ask PAIRS…                         a message with a reply; waits for "reply…" or "failed…"
/// session-begin PAIRS…                       the same, whose end becomes an event
/// session-tell PAIRS…                        a message without a reply; an error becomes an event
/// session-data TEXT / session-tell-data TEXT the same with data
/// session-context PAIRS…                     updates the application context
/// session-contexts                           "SENT / RECEIVED"
/// session-info FIRST COUNT                   transfers dictionaries {n: NUMBER}
/// session-expiring NUMBER MS KEY             transfers {n: NUMBER}, which expires (0: never), with a key (-: none)
/// session-file-expiring PATH MS              transfers a file that expires
/// session-ask-expiring MS PAIRS…             as ask, with a time of its own
/// session-complication FIRST COUNT           the same for the complication
/// session-outstanding                        the numbers, "!" behind the current complication's
/// session-cancel NUMBER                      cancels the dictionary with that number
/// session-keep NUMBER                        transfers a dictionary, and keeps its object
/// session-cancel-kept                        cancels that object; answers whether it was in time
/// session-file PATH PAIRS…                   transfers a file
/// session-file-cancel                        cancels the first outstanding file
/// session-files                              the names of the outstanding files
/// session-state                              the session's view of its counterpart
/// session-can-send                           whether a `PeerGate` lets it send
/// session-directory                          the watch's directory
/// session-numbers                            sends numbers of all kinds, in each way; as session-ask
/// session-oversize BYTES                     sends each kind with BYTES bytes; answers the codes
/// session-forget                             releases the delegate
/// session-remember                           sets it again
/// session-cinema ROLE CODES                  becomes one side of the tutorial's cinema
/// session-buy DELIVERY ID…                   buys there; answers "done"
/// session-isolated APP COUNT                 becomes a watch of the main actor ("five", "six", "default"),
///                                            asks COUNT questions; answers the replies
/// session-bought                             the bought films, and the answers
/// ```
///
/// Those of sessions that are observed are in `ObservingVerbs`.
enum SessionVerbs {
  private static let actor = Mutex<SessionActor?>(nil)

  static func perform(
    _ verb: Substring, _ container: SharedContainer, _ words: [String]
  ) throws -> String {
    if verb == "environment" { return begin("full") }
    if verb == "observe-others" { return ObservingVerbs.observeOthers() }
    if verb == "observed" || verb == "observed-six" {
      guard let role = WCSession.Role(rawValue: words[0]) else { return "usage" }
      let watchName = verb == "observed" ? words[1] : "watch"
      WCSession.configure(role: role, container: container, watchName: watchName)
      guard verb == "observed" else {
        return ObservingVerbs.observeInSix(
          role, words[1], until: words.dropFirst(2).joined(separator: " "))
      }
      return begin("full") { ObservingVerbs.observe($0) }
    }
    if verb == "start" {
      guard words.count >= 3, let role = WCSession.Role(rawValue: words[0]) else { return "usage" }
      WCSession.configure(
        role: role, container: container, watchName: words[1],
        replyTimeout: .seconds(words.count > 3 ? Double(words[3]) ?? 20 : 20))
      return begin(words[2])
    }
    if verb == "isolated" {
      WCSession.configure(role: .watch, container: container)
      return MainActor.assumeIsolated { IsolatedSessions.ask(as: words[0], Int(words[1]) ?? 0) }
    }
    if ["cinema", "buy", "bought"].contains(verb) {
      return SessionCinema.perform(verb, container, words)
    }
    guard let actor = actor.withLock({ $0 }) else { return "error not started" }
    switch verb {
    case "await": return actor.events.await(words.joined(separator: " "))
    case "events": return actor.events.all.joined(separator: "; ")
    case _ where ObservingVerbs.all.contains(verb):
      ObservingVerbs.perform(verb, actor.events, words)
    case "can-send": return "\(PeerGate.canSendToPeer())"
    case "forget": WCSession.default.delegate = nil
    case "remember": WCSession.default.delegate = actor.delegate
    default: return try actor.perform(verb, words)
    }
    return "done"
  }

  private static func begin(
    _ manner: String, _ prepare: (SessionEvents) -> Void = { _ in }
  ) -> String {
    let new = SessionActor(manner)
    actor.withLock { $0 = new }
    prepare(new.events)
    WCSession.default.delegate = new.delegate
    WCSession.default.activate()
    return new.events.await("activated")
  }

  /// Asks twice for a session, in a program that has no handler of events.
  static func beAlone() -> Never {
    for _ in 0..<2 { print(WCSession.isSupported() ? "session" : "no session") }
    exit(0)
  }

  /// Runs a phone or watch as its environment says, without a user at its standard input: it
  /// answers messages until it receives "quit", or for a minute.
  static func serve() -> Never {
    let actor = SessionActor("full")
    WCSession.default.delegate = actor.delegate
    WCSession.default.activate()
    _ = actor.events.await("message quit", or: "activated 7", within: 60)
    exit(0)
  }
}

/// The tutorial's cinema. Its code hops to the main queue, which the main thread serves between
/// lines.
enum SessionCinema {
  // Only the main thread, which reads the lines, uses it.
  nonisolated(unsafe) private static var cinema: CinemaTutorial?

  static func perform(
    _ verb: Substring, _ container: SharedContainer, _ words: [String]
  ) -> String {
    switch verb {
    case "cinema":
      WCSession.configure(
        role: words[0] == "phone" ? .phone : .watch, container: container)
      cinema = CinemaTutorial(
        isPhone: words[0] == "phone", codes: URL(filePath: words[1], directoryHint: .isDirectory))
      while WCSession.default.activationState != .activated { serveMainQueue() }
    case "buy": cinema?.buy(words.dropFirst().compactMap { Int($0) }, words[0])
    default:
      serveMainQueue()
      return "\(cinema?.purchased ?? []) \(cinema?.answers ?? [])"
    }
    return "done"
  }

  private static func serveMainQueue() {
    RunLoop.main.run(until: Date().addingTimeInterval(0.002))
  }
}

/// The events of a delegate, in order.
final class SessionEvents: Sendable {
  private let events = Mutex<[String]>([])

  private let isBusy = Mutex(false)

  /// Records an event, and also a call on the main queue or within another call.
  func add(_ event: String, isOnMain: Bool = false) {
    let wasBusy = isBusy.withLock { isBusy in
      defer { isBusy = true }
      return isBusy
    }
    if wasBusy || Thread.isMainThread && !isOnMain {
      events.withLock { $0.append("wrong: \(event)") }
    }
    // Long enough for another call to come within this one, if there is one.
    Thread.sleep(forTimeInterval: 0.000_1)
    events.withLock { $0.append(event) }
    isBusy.withLock { $0 = false }
  }

  var all: [String] { events.withLock { $0 } }

  func await(_ text: String, or other: String? = nil, within seconds: Double = 100) -> String {
    let deadline = Date().addingTimeInterval(seconds)
    while Date() < deadline {
      let found: String? = events.withLock { events in
        let index = events.firstIndex { event in
          event.hasPrefix(text) || other.map { event.hasPrefix($0) } == true
        }
        return index.map { events.remove(at: $0) }
      }
      if let found { return found }
      Thread.sleep(forTimeInterval: 0.001)
    }
    return "never: \(text); but: \(all.joined(separator: "; "))"
  }
}

struct SessionActor: Sendable {
  /// The transfer whose object was kept.
  private static let kept = Mutex<WCSessionUserInfoTransfer?>(nil)

  let events: SessionEvents
  let delegate: any WCSessionDelegate & Sendable

  init(_ manner: String) {
    events = SessionEvents()
    delegate =
      manner == "bare"
      ? BareSessionDelegate(events) : FullSessionDelegate(events, manner)
  }

  private var session: WCSession { .default }

  func perform(_ verb: Substring, _ words: [String]) throws -> String {
    switch verb {
    case "activate": session.activate()
    case "ask", "begin":
      return ask(verb == "begin") {
        session.sendMessage(SessionWords.pairs(words), replyHandler: $0, errorHandler: $1)
      }
    case "ask-expiring":
      return ask(false) {
        session.sendMessage(
          SessionWords.pairs(Array(words.dropFirst())), expiresAfter: lifetime(words[0]) ?? .zero,
          replyHandler: $0, errorHandler: $1)
      }
    case "tell":
      session.sendMessage(SessionWords.pairs(words), replyHandler: nil) { [events] in
        events.add("failed \(SessionWords.code($0))")
      }
    case "data": return askData(Data(words.joined(separator: " ").utf8))
    case "tell-data":
      session.sendMessageData(Data(words.joined(separator: " ").utf8), replyHandler: nil) {
        [events] in
        events.add("failed \(SessionWords.code($0))")
      }
    case "context":
      do {
        try session.updateApplicationContext(SessionWords.pairs(words))
      } catch {
        return "failed \(SessionWords.code(error))"
      }
    case "contexts":
      return SessionWords.text(session.applicationContext) + " / "
        + SessionWords.text(session.receivedApplicationContext)
    case "info": try each(words) { session.transferUserInfo(["n": $0]) }
    case "expiring":
      session.transferUserInfo(
        ["n": Int(words[0]) ?? 0], expiresAfter: lifetime(words[1]),
        key: words[2] == "-" ? nil : words[2])
    case "file-expiring":
      session.transferFile(
        URL(filePath: words[0]), metadata: nil, expiresAfter: lifetime(words[1]))
    case "complication": try each(words) { session.transferCurrentComplicationUserInfo(["n": $0]) }
    case "cancel":
      for transfer in session.outstandingUserInfoTransfers
      where SessionWords.text(transfer.userInfo) == "n=\(words[0])" {
        transfer.cancel()
        return "\(!transfer.isTransferring)"
      }
      return "none"
    case "keep": Self.kept.withLock { $0 = session.transferUserInfo(["n": Int(words[0]) ?? 0]) }
    case "cancel-kept":
      let transfer = Self.kept.withLock(\.self)
      transfer?.cancel()
      return "\(transfer?.isTransferring == false)"
    case "outstanding":
      return session.outstandingUserInfoTransfers.map {
        SessionWords.text($0.userInfo).dropFirst(2) + ($0.isCurrentComplicationInfo ? "!" : "")
      }.joined(separator: " ")
    case "file":
      session.transferFile(
        URL(filePath: words[0]),
        metadata: words.count > 1 ? SessionWords.pairs(Array(words.dropFirst())) : nil)
    case "file-cancel": session.outstandingFileTransfers.first?.cancel()
    case "files":
      return session.outstandingFileTransfers.map(\.file.fileURL.lastPathComponent)
        .joined(separator: " ")
    case "state": return state
    case "directory": return session.watchDirectoryURL?.path ?? "nil"
    case "numbers":
      session.transferUserInfo(ReceivedNumbers.sent)
      try session.updateApplicationContext(ReceivedNumbers.sent)
      return ask(false) {
        session.sendMessage(ReceivedNumbers.sent, replyHandler: $0, errorHandler: $1)
      }
    case "oversize": return try oversize(Int(words[0]) ?? 0)
    default: return "error usage"
    }
    return "done"
  }

  private func lifetime(_ word: String) -> Duration? {
    Int(word).flatMap { $0 > 0 ? .milliseconds($0) : nil }
  }

  private func each(_ words: [String], _ body: (Int) -> Void) throws {
    let first = Int(words[0]) ?? 0
    for number in first..<(first + (Int(words[1]) ?? 0)) { body(number) }
  }

  private func ask(
    _ isLater: Bool,
    _ send: (@escaping ([String: Any]) -> Void, @escaping (any Error) -> Void) -> Void
  ) -> String {
    let events = events
    let mark = isLater ? "" : "own "
    send(
      { events.add("\(mark)reply \(SessionWords.text($0))") },
      { events.add("\(mark)failed \(SessionWords.code($0))") })
    if isLater { return "done" }
    return String(events.await("own ").dropFirst(4))
  }

  private func askData(_ data: Data) -> String {
    let events = events
    session.sendMessageData(data) { reply in
      events.add("own reply \(String(decoding: reply, as: UTF8.self))")
    } errorHandler: { error in
      events.add("own failed \(SessionWords.code(error))")
    }
    return String(events.await("own ").dropFirst(4))
  }

  private var state: String {
    var words = [
      ["notActivated", "inactive", "activated"][session.activationState.rawValue]
    ]
    if session.isPaired { words.append("paired") }
    if session.isWatchAppInstalled { words.append("installed") }
    if session.isComplicationEnabled { words.append("complication") }
    if session.isCompanionAppInstalled { words.append("companion") }
    if session.isReachable { words.append("reachable") }
    if session.hasContentPending { words.append("pending") }
    return words.joined(separator: " ") + " \(session.remainingComplicationUserInfoTransfers)"
  }

  private func oversize(_ bytes: Int) throws -> String {
    let objects: [String: Any] = ["a": Data(count: bytes)]
    var codes = [
      ask(false) { session.sendMessage(objects, replyHandler: $0, errorHandler: $1) },
      askData(Data(count: bytes)),
    ]
    do {
      try session.updateApplicationContext(objects)
      codes.append("done")
    } catch {
      codes.append("failed \(SessionWords.code(error))")
    }
    return codes.joined(separator: ", ")
  }
}
