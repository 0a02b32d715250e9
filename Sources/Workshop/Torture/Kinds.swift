/// A kind of work: all kinds, or those that `--only` names.
enum Kind: String, CaseIterable {
  /// Values and notifications.
  case values
  /// Guaranteed messages.
  case queues
  /// Requests between sessions.
  case requests
  /// Files between sessions.
  case files
  /// Presence.
  case presence

  /// Returns the kinds in a list such as "queues,files", or nil for any other text.
  static func list(_ text: String) -> Set<Kind>? {
    let kinds = text.split(separator: ",").map { Kind(rawValue: String($0)) }
    guard !kinds.isEmpty, !kinds.contains(nil) else { return nil }
    return Set(kinds.compactMap { $0 })
  }

  static func text(_ kinds: Set<Kind>) -> String {
    Kind.allCases.filter(kinds.contains).map(\.rawValue).joined(separator: ",")
  }
}
