package import AppGroup
import PropertyLists

/// For programs that show a container to people.
extension GroupDefaults {
  /// Returns what a value of the package holds, if it holds defaults; nil for any other name.
  package static func use(ofOwnValue name: String) -> OwnUse? {
    guard let stored = Suite.StoredName(ownValue: name) else { return nil }
    let title =
      switch stored {
      case .suite(nil): "the defaults of the container"
      case .suite(let suite?): "the defaults of the suite \"\(suite)\""
      }
    return OwnUse(title, is: "dictionary of defaults") { $0.dictionaryValue != nil }
  }

  /// Returns whether a value of the package holds defaults, and of which suite; nil for the
  /// container's own.
  package static func suite(ofOwnValue name: String) -> (isDefaults: Bool, name: String?) {
    switch Suite.StoredName(ownValue: name) {
    case .suite(let suite): (true, suite)
    case nil: (false, nil)
    }
  }
}
