/// Which container a command works on.
enum ContainerSelection: Sendable, Equatable {
  case group(String)
  case directory(String)

  static let groupVariable = "WORMHOLE_GROUP"
  static let directoryVariable = "WORMHOLE_CONTAINER"

  static let options: [OptionDescription] = [
    .value(
      "group", "id", .identifier,
      help: "The container of this group, such as group.com.example.cinema. It is made at first "
        + "use. \(groupVariable) in the environment says the same."),
    .value(
      "container", "directory", .directory,
      help: "The container in this directory, which must exist. \(directoryVariable) in the "
        + "environment says the same."),
  ]

  /// The options if there are any, else the environment; an empty variable counts as unset.
  ///
  /// - Throws: the reason, when both ways of naming a container are used or none is.
  static func resolve(
    group: String?, directory: String?, variable: (String) -> String?
  ) throws(Problem) -> Self {
    switch (group, directory) {
    case (_?, _?):
      throw Problem(reason: "--group and --container exclude each other: each names a container")
    case (let group?, nil): return .group(group)
    case (nil, let directory?): return .directory(directory)
    case (nil, nil): break
    }
    let named = [groupVariable, directoryVariable].map { name in
      variable(name).flatMap { $0.isEmpty ? nil : $0 }
    }
    switch (named[0], named[1]) {
    case (_?, _?):
      throw Problem(
        reason: "\(groupVariable) and \(directoryVariable) are both set: unset one, or say "
          + "--group or --container")
    case (let group?, nil): return .group(group)
    case (nil, let directory?): return .directory(directory)
    case (nil, nil):
      throw Problem(
        reason: "no container is named: say --group ID or --container DIRECTORY, or set "
          + "\(groupVariable) or \(directoryVariable)")
    }
  }

  struct Problem: Error {
    let reason: String
  }
}
