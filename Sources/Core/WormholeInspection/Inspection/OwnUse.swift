import Wormhole
package import WormholePropertyLists

/// The use of one of the package's own values: its title for people, and its shape.
///
/// The module that owns a name defines its use. A program that shows a container asks all modules.
package struct OwnUse: Sendable {
  /// The title with its article: "the pairing of \"phone\"".
  package let title: String
  /// Returns the fault of a property list for this use, as a clause; nil if there is none.
  package let problem: @Sendable (PropertyListValue) -> String?

  package init(
    _ title: String, problem: @escaping @Sendable (PropertyListValue) -> String? = { _ in nil }
  ) {
    self.title = title
    self.problem = problem
  }

  package init(
    _ title: String, is shape: String, _ isOfShape: @escaping @Sendable (PropertyListValue) -> Bool
  ) {
    self.init(title) { isOfShape($0) ? nil : "it is a property list, but no \(shape)" }
  }
}

extension PlainLog {
  /// Returns the use of the package's own value that is a subscriber's position; nil for other
  /// names.
  package static func use(ofOwnValue name: String) -> OwnUse? {
    guard let (directory, subscriber) = LogCursor.subscriber(ofOwnName: name) else { return nil }
    let log =
      if case .identifier(let log) = EncodedName.decode(directory.utf8) {
        "the log \"\(log)\""
      } else {
        "a log with a long name"
      }
    return OwnUse("the position of \"\(subscriber)\" in \(log)", is: "position") {
      LogCursor.Position($0) != nil
    }
  }
}

extension Claim {
  /// Returns the use of the package's own value that is a claim; nil for any other name.
  package static func use(ofOwnValue name: String) -> OwnUse? {
    self.name(ofOwnValue: name).map { claim in
      OwnUse("the claim \"\(claim)\"", is: "claim", isRecord)
    }
  }
}
