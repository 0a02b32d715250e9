import Wormhole

/// The place that a suite's name refers to.
enum SuitePlace: Sendable {
  /// The container of the group with that name.
  case groups
  /// A suite in this container.
  case container(SharedContainer)

  /// Names with another meaning in the original (NSUserDefaults.h).
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

  /// Returns the suite with a name; creates the container of a group if it is missing.
  func suite(_ name: String) throws -> Suite {
    try Self.check(name)
    switch self {
    case .groups: return Suite(nil, in: try SharedContainer(group: name))
    case .container(let container): return Suite(name, in: container)
    }
  }

  /// Returns the suite with a name for a caller that only reads; creates nothing.
  ///
  /// - Returns: nil if there is no container.
  func existingSuite(_ name: String) throws -> Suite? {
    try Self.check(name)
    switch self {
    case .container(let container): return Suite(name, in: container)
    case .groups: return try SharedContainer.existing(group: name).map { Suite(nil, in: $0) }
    }
  }
}
