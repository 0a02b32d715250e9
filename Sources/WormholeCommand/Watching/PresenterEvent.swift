import PropertyLists

/// One thing that a presenter is told or asked, as `wormhole watch` prints it.
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

  /// Its first word, and what it is about: names for people that read the line, keys for JSON.
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
}

extension String {
  /// A file's name may contain what ends a line or a field.
  fileprivate var onOneLine: String {
    let scalars = unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control ? scalar.escaped(asASCII: true) : String(scalar)
    }
    return scalars.joined()
  }
}
