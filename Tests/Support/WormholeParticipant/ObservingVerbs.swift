import Foundation
import WatchConnectivity
import Wormhole
import WormholeWatchClients

/// The verbs of a participant whose session has observers or a delegate before its delegate.
///
/// ```
/// session-observed ROLE WATCH  activates with observers, whose calls become events
/// session-unobserve            ends the observations
/// session-upload PATH          transfers a file; "whole" becomes an event
/// session-tap                  puts a delegate before the delegate
/// session-untap                removes it
/// session-observe-others       observes what reports no changes
/// session-observed-six ROLE PATH TEXT  activates with observers of the main actor, transfers a file; answers the
///                              calls, when they include TEXT
/// ```
enum ObservingVerbs {
  static let all: Set<Substring> = [
    "observed", "unobserve", "upload", "tap", "untap", "observed-six",
  ]

  // Only the main thread, which reads the lines, uses them.
  nonisolated(unsafe) private static var gate: ContentGate?
  nonisolated(unsafe) private static let model = CounterpartModel()
  nonisolated(unsafe) private static var tap: SensorTap?

  /// Begins to observe a session that is configured and not yet active.
  static func observe(_ events: SessionEvents) {
    gate = ContentGate { events.add($0) }
    model.follow(.default) { events.add($0, isOnMain: true) }
  }

  static func perform(_ verb: Substring, _ events: SessionEvents, _ words: [String]) {
    switch verb {
    case "unobserve":
      gate?.close()
      model.stop()
    case "upload":
      model.send(URL(filePath: words[0]), by: .default) { events.add($0) }
    case "tap":
      tap = SensorTap { events.add($0) }
      tap?.begin()
    default:
      tap?.end()
    }
  }

  static func observeOthers() -> String {
    WCSession.default.observe(\.applicationContext) { _, _ in }.invalidate()
    Progress(totalUnitCount: 1).observe(\.isFinished) { _, _ in }.invalidate()
    return "done"
  }

  static func observeInSix(_ role: WCSession.Role, _ file: String, until text: String) -> String {
    MainActor.assumeIsolated {
      let observer = SwiftSixObserver()
      let delegate = BareSessionDelegate(SessionEvents())
      observer.start(.default)
      WCSession.default.delegate = delegate
      WCSession.default.activate()
      serveMainQueue { WCSession.default.activationState == .activated }
      observer.upload(URL(filePath: file))
      serveMainQueue { observer.heard.contains(text) && observer.heard.contains("finished") }
      return observer.heard.joined(separator: "; ")
    }
  }

  private static func serveMainQueue(until isDone: () -> Bool) {
    let deadline = Date().addingTimeInterval(100)
    while !isDone(), Date() < deadline {
      RunLoop.main.run(until: Date().addingTimeInterval(0.002))
    }
  }
}
