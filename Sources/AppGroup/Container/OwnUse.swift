package import PropertyLists

/// What the package keeps in one of its own values: what people call it, and what it looks like.
///
/// The module that owns a name says so; a program that shows a container to people asks all modules.
package struct OwnUse: Sendable {
  /// With its article: "the pairing of \"phone\"".
  package let title: String
  /// What is wrong with a property list that is to be one of these, as a clause; nil for nothing.
  package let problem: @Sendable (PropertyListValue) -> String?

  package init(
    _ title: String, problem: @escaping @Sendable (PropertyListValue) -> String? = { _ in nil }
  ) {
    self.title = title
    self.problem = problem
  }

  /// One that must be of some shape.
  package init(
    _ title: String, is shape: String, _ isOfShape: @escaping @Sendable (PropertyListValue) -> Bool
  ) {
    self.init(title) { isOfShape($0) ? nil : "it is a property list, but no \(shape)" }
  }
}
