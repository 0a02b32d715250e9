import Foundation
import WormholeMessageClients

/// The verbs of a participant as an app written for MMWormhole; the main thread serves the main queue
/// while a verb waits.
///
/// ```
/// mm-use KIND [DIRECTORY]        replaces the wormhole: memory, json, counting, temporary or file
/// mm-listen ID                   begins to record the messages of ID
/// mm-stop ID                     ends all listening
/// mm-pass ID FORM TITLE          passes a message: text, string, value, alarm, alarms, nothing or message
/// mm-read ID                     the latest message
/// mm-clear ID                    removes it; "all" removes all
/// mm-heard COUNT                 waits until so many were recorded, and answers all
/// mm-directory -                 where a messenger's files are
/// mm-session SIDE                becomes the phone or the watch
/// mm-request -                   the watch asks for the alarms
/// mm-cancel INDEX                the watch cancels an alarm
/// mm-alarms                      the phone sends its alarms
/// mm-note TEXT                   the phone sends a note, in the same context
/// mm-picture BYTES               the phone sends a file
/// mm-serve COUNT                 the phone serves until so many alarms were cancelled; answers all
/// mm-titles COUNT                waits until the watch has heard so often of alarms, and answers all
/// mm-notes COUNT                 the same for notes
/// mm-pictures COUNT              the same for files
/// mm-current -                   the alarms in the watch's context, and the size of its stored picture
/// ```
@MainActor
enum WormholeVerbs {
  static func perform(_ verb: Substring, _ key: String, _ rest: [String]) -> String {
    let center = AlarmCenter.shared
    switch verb {
    case "use": center.use(key, rest.first ?? "")
    case "listen": center.listen(to: key)
    case "stop": center.stop()
    case "pass": center.pass(rest.first ?? "", key, rest.last ?? "")
    case "read": return center.read(key)
    case "clear": center.clear(key == "all" ? nil : key)
    case "heard": return awaited(key) { center.heard }
    case "directory": return center.directoryPath ?? "none"
    default: return session(verb, key)
    }
    return "done"
  }

  private static func session(_ verb: Substring, _ key: String) -> String {
    let watch = { PhoneCommunicator.sharedInstance }
    let phone = { WatchCommunicator.sharedInstance }
    switch verb {
    case "session" where key == "phone": phone().configureRoutes()
    case "session":
      watch().start()
      serve { watch().isReachable }
      return watch().isReachable ? "reachable" : "unreachable"
    case "request": watch().requestAlarms()
    case "cancel": watch().cancel(Int(key) ?? 0)
    case "alarms": phone().sendAlarms()
    case "note": phone().sendNote(key)
    case "notes": return awaited(key) { watch().notes }
    case "picture": phone().sendPicture(Data(count: Int(key) ?? 0))
    case "serve":
      let count = Int(key) ?? 0
      serve { phone().cancelled.count >= count }
      return "\(phone().cancelled)"
    case "titles": return awaited(key) { watch().titles.map { $0.joined(separator: "+") } }
    case "pictures": return awaited(key) { watch().pictures.map(String.init) }
    case "current":
      let size = watch().storedPicture.map(String.init) ?? "none"
      return watch().currentTitles.joined(separator: "+") + " " + size
    default: return "error usage"
    }
    return "done"
  }

  private static func awaited(_ count: String, _ all: () -> [String]) -> String {
    serve { all().count >= Int(count) ?? 1 }
    return all().joined(separator: " ")
  }

  /// Serves the main queue until a condition holds.
  static func serve(until isDone: () -> Bool) {
    let deadline = Date().addingTimeInterval(100)
    while !isDone(), Date() < deadline {
      RunLoop.main.run(until: Date().addingTimeInterval(0.002))
    }
  }
}
