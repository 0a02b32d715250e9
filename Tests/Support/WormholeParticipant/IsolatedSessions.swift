import Foundation
import WatchConnectivity
import WormholeCinemaTutorial
import WormholeMainActorApp

/// Apps whose handlers are written in the main actor, each as its compiler mode requires.
@MainActor
enum IsolatedSessions {
  static func ask(as app: String, _ count: Int) -> String {
    switch app {
    case "five":
      let model = SwiftFiveModel()
      return play(model.start, { model.ask(count) }, { model.all }, expected: count + 3)
    case "six":
      let model = SwiftSixModel()
      return play(model.start, { model.ask(count) }, { model.all }, expected: count + 3)
    default:
      let app = MainActorApp()
      return play(app.start, { app.ask(count) }, { app.all }, expected: count + 3)
    }
  }

  private static func play(
    _ start: () -> Void, _ ask: () -> Void, _ heard: () -> [String], expected: Int
  ) -> String {
    start()
    serveMainQueue { WCSession.default.isReachable }
    ask()
    serveMainQueue { heard().count >= expected }
    return heard().joined(separator: " ")
  }

  private static func serveMainQueue(until isDone: () -> Bool) {
    let deadline = Date().addingTimeInterval(100)
    while !isDone(), Date() < deadline {
      RunLoop.main.run(until: Date().addingTimeInterval(0.002))
    }
  }
}
