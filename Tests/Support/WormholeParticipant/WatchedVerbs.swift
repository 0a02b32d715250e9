import Dispatch
import GroupDefaults
import Synchronization
import Wormhole

/// The verbs of a participant that observes.
///
/// ```
/// watch-value NAME   begins; its reports are kept
/// watch-default KEY  the same for a key of the container's defaults, in a task
/// watch-seen NAME    answers the reports about a name, "1 nil 2"
/// ```
enum WatchedVerbs {
  static let all: Set<String> = ["watch-value", "watch-default", "watch-seen"]

  private static let tokens = Mutex<[ObservationToken]>([])
  private static let seen = Mutex<[String: [String]]>([:])

  static func perform(_ verb: String, _ value: PlainValue) throws -> String {
    let name = value.identifier
    switch verb {
    case "watch-value":
      let token = try value.observe(on: .global()) { snapshot in
        let content = Result { try snapshot.propertyList() }
        // Damage would be nil, too, and the test would fail.
        note(name, (try? content.get()).map { "\($0)" } ?? "nil")
      }
      tokens.withLock { $0.append(token) }
    case "watch-default":
      let changes = try GroupDefaults(in: value.container).changes(forKey: name)
      Task { for await change in changes { note(name, change.newValue.map { "\($0)" } ?? "nil") } }
    default: return seen.withLock { $0[name, default: []].joined(separator: " ") }
    }
    return "done"
  }

  private static func note(_ name: String, _ text: String) {
    seen.withLock { $0[name, default: []].append(text) }
  }
}
