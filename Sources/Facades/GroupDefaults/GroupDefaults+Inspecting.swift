package import Wormhole
package import WormholeInspection
import WormholePropertyLists

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

  /// Returns the names of the suites of a container, sorted; nil, for the container's own, comes first.
  ///
  /// - Returns: The names, including removed suites, whose `storedValues` are nil.
  /// - Throws: `AppGroupError`.
  package static func suiteNames(in container: SharedContainer) throws -> [String?] {
    let names = try container.own.valueIdentifiers().map { suite(ofOwnValue: $0) }
      .filter(\.isDefaults).map(\.name)
    return names.sorted { first, second in
      guard let second else { return false }
      return first.map { $0.utf8.lexicographicallyPrecedes(second.utf8) } ?? true
    }
  }
}
