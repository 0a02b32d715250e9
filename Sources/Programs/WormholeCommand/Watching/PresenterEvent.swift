import PropertyLists

/// An event of a file presenter, as `wormhole watch` prints it.
enum PresenterEvent: Sendable, Hashable {
  enum Other: String, Sendable {
    case reader, writer
  }

  case changed
  case moved(to: String)
  case deleting
  case relinquish(Other)
  case reacquire(Other)
  case save
  case subitemAppeared(String)
  case subitemChanged(String)
  case subitemMoved(String, to: String)
  case subitemDeleting(String)

  /// The first word, and the fields after it: in a line by their order, in JSON by their keys.
  private var parts: (word: String, fields: [(key: String, text: String)]) {
    switch self {
    case .changed: ("changed", [])
    case .moved(let path): ("moved", [("to", path)])
    case .deleting: ("deleting", [])
    case .relinquish(let other): ("relinquish", [("other", other.rawValue)])
    case .reacquire(let other): ("reacquire", [("other", other.rawValue)])
    case .save: ("save", [])
    case .subitemAppeared(let path): ("appeared", [("subitem", path)])
    case .subitemChanged(let path): ("changed", [("subitem", path)])
    case .subitemMoved(let old, let new): ("moved", [("subitem", old), ("to", new)])
    case .subitemDeleting(let path): ("deleting", [("subitem", path)])
    }
  }

  /// `moved old<TAB>new`: paths may contain spaces, and their control characters are escaped.
  var line: String {
    let (word, fields) = parts
    guard !fields.isEmpty else { return word }
    return word + " " + fields.map { $0.text.onOneLine }.joined(separator: "\t")
  }

  /// `{"event":"moved","subitem":"old","to":"new"}`.
  var propertyList: PropertyListValue {
    let (word, fields) = parts
    var members: [String: PropertyListValue] = ["event": .string(word)]
    for (key, text) in fields { members[key] = .string(text) }
    return .dictionary(members)
  }

  /// Events that have not been printed yet. Beyond `capacity` all that wait become one `changed`: a slow
  /// reader of our output delays no other process, because the presenter has answered already, and
  /// costs no more memory than this.
  static func backlog(capacity: Int = 10_000) -> Backlog<PresenterEvent> {
    Backlog { events, event in
      if events.count >= capacity { events = [.changed] }
      events.append(event)
    }
  }
}
