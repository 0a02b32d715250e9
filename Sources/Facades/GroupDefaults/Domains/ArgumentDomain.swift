import WormholePropertyLists

/// The argument domain: `-key value` pairs of the command line, which precede all stored values.
///
/// As in swift-corelibs-foundation's UserDefaults.swift, a word that begins with "-" is a key if
/// the next word does not, and the next word is its value. An XML value is read as a property list
/// (`<integer>3</integer>` is enough). Every other value is a string, which the getters convert.
/// The originals also read OpenStep text here; the readers of this package refuse it.
enum ArgumentDomain {
  /// The argument domain of this process.
  static let ofProcess = parse(CommandLine.arguments)

  static func parse(_ arguments: [String]) -> Suite.Contents {
    var result: Suite.Contents = [:]
    var index = 0
    while index + 1 < arguments.count {
      let (word, next) = (arguments[index], arguments[index + 1])
      index += 1
      guard word.hasPrefix("-"), !next.hasPrefix("-") else { continue }
      index += 1
      if word != "-" { result[String(word.dropFirst())] = value(trimmed(next)) }
    }
    return result
  }

  private static func trimmed(_ text: String) -> String {
    let kept = text.drop { $0.isWhitespace }
    guard let last = kept.lastIndex(where: { !$0.isWhitespace }) else { return "" }
    return String(kept[...last])
  }

  private static func value(_ text: String) -> PropertyListValue {
    guard text.hasPrefix("<") else { return .string(text) }
    let isDocument = ["<?xml", "<!DOCTYPE", "<plist"].contains { text.hasPrefix($0) }
    let document = isDocument ? text : "<plist version=\"1.0\">\(text)</plist>"
    do throws(PropertyListError) {
      return try PropertyListValue(bytes: Array(document.utf8))
    } catch {
      // As in the original, a text that is not a property list is a string with these characters.
      return .string(text)
    }
  }
}
