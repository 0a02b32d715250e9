import AppGroup

/// Where a name of a suite leads.
enum SuitePlace: Sendable {
  /// To the container of that group.
  case groups
  /// To a suite of this container.
  case container(SharedContainer)

  /// Names that stand for something else in the original (NSUserDefaults.h).
  static let reserved: Set<String> = [
    "", GroupDefaults.globalDomain, GroupDefaults.argumentDomain, GroupDefaults.registrationDomain,
  ]

  static func check(_ name: String) throws {
    guard reserved.contains(name) else { return }
    throw GroupDefaultsError(
      .invalidSuiteName, "open the suite \"\(name)\"",
      reason: name.isEmpty ? "the name is empty" : "that name stands for a domain of its own",
      remedy: "name an App Group such as group.com.example.app")
  }

  /// The suite of a name; the container of a group is made where it is missing.
  func suite(_ name: String) throws -> Suite {
    try Self.check(name)
    switch self {
    case .groups: return Suite(nil, in: try SharedContainer(group: name))
    case .container(let container): return Suite(name, in: container)
    }
  }

  /// The suite of a name for somebody who only looks: nothing is made.
  ///
  /// - Returns: nil where there is no container.
  func existingSuite(_ name: String) throws -> Suite? {
    try Self.check(name)
    switch self {
    case .container(let container): return Suite(name, in: container)
    case .groups:
      do {
        let path = try SharedContainer.path(ofGroup: name)
        return try SharedContainer.existing(path: path, group: name).map { Suite(nil, in: $0) }
      } catch let error as AppGroupError where error.code == .containerMissing {
        return nil
      }
    }
  }
}
