import PropertyLists
import Terminals

/// One thing that is wrong with a container: what, where, and how it is mended.
struct Finding: Equatable {
  /// For machines; the values are never changed.
  enum Kind: String {
    case containerRefused, damagedValue, overdueLease, leftover, foreignEntry, foreignOwner
    case looseMode, watchLimit, networkFileSystem, unreadablePart
  }

  let kind: Kind
  /// What is wrong, as a sentence.
  let what: String
  let path: String
  /// What to do, and the exact command where there is one.
  let advice: String
  let command: String?

  /// A paragraph; paths and commands are never broken.
  func text(number: Int, columns: Int) -> String {
    let lead = "\(number). "
    let indent = lead.count
    let space = String(repeating: " ", count: indent)
    var text =
      lead + TextWrapping.wrap(what, columns: columns, indent: indent, firstIndent: indent) + "\n"
      + space + path + "\n" + space
      + TextWrapping.wrap(advice, columns: columns, indent: indent, firstIndent: indent) + "\n"
    if let command { text += space + "  " + command + "\n" }
    return text.withoutControlCharacters
  }

  var propertyList: PropertyListValue {
    .object([
      "kind": .string(kind.rawValue), "what": .string(what), "path": .string(path),
      "advice": .string(advice), "command": command.map { .string($0) },
    ])
  }
}
