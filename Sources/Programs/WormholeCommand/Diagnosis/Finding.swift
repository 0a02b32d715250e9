import PropertyLists
import Terminals

/// One problem of a container: what, where, and how to repair it.
struct Finding: Equatable {
  /// For machines; the values are never changed.
  enum Kind: String {
    case containerRefused, damagedValue, overdueLease, leftover, foreignEntry, foreignOwner
    case looseMode, watchLimit, networkFileSystem, unreadablePart
  }

  /// How serious it is; the names are for machines, too.
  enum Level: Int, Comparable {
    /// Normal: a program that is killed leaves such entries, and they block nobody.
    case note
    /// It works, but slower or less safely than it should.
    case warning
    /// Something is lost, refused or unreadable until it is repaired.
    case fault

    static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
  }

  let kind: Kind
  /// By default that of the kind.
  var level: Level
  /// The problem, as a sentence.
  let what: String
  let path: String
  /// The remedy, and its exact command where there is one.
  let advice: String
  let command: String?

  init(
    kind: Kind, level: Level? = nil, what: String, path: String, advice: String, command: String?
  ) {
    self.kind = kind
    self.level = level ?? kind.level
    self.what = what
    self.path = path
    self.advice = advice
    self.command = command
  }

  /// A paragraph; paths and commands are never broken.
  func text(number: Int, columns: Int) -> String {
    let indent = "\(number). ".count
    let lead = "\(number). \("\(level)".capitalizedFirst): "
    let space = String(repeating: " ", count: indent)
    var text =
      lead + TextWrapping.wrap(what, columns: columns, indent: indent, firstIndent: lead.count)
      + "\n"
      + space + path + "\n" + space
      + TextWrapping.wrap(advice, columns: columns, indent: indent, firstIndent: indent) + "\n"
    if let command { text += space + "  " + command + "\n" }
    return text.withoutControlCharacters
  }

  var propertyList: PropertyListValue {
    .object([
      "kind": kind.rawValue, "level": "\(level)", "what": what, "path": path, "advice": advice,
      "command": command,
    ])
  }
}

extension Finding.Kind {
  fileprivate var level: Finding.Level {
    switch self {
    case .containerRefused, .damagedValue, .foreignOwner, .unreadablePart: .fault
    case .overdueLease, .foreignEntry, .looseMode, .watchLimit, .networkFileSystem: .warning
    case .leftover: .note
    }
  }
}

extension [Finding] {
  /// `1 fault, 2 warnings, 1 note`; nil if there is none of these levels.
  func summary(of levels: [Finding.Level] = [.fault, .warning, .note]) -> String? {
    let parts = levels.compactMap { level in
      let count = self.count { $0.level == level }
      return count == 0 ? nil : "\(count) \(level)\(count == 1 ? "" : "s")"
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }
}
