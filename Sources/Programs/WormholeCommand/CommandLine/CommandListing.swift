import WormholePropertyLists

/// Commands with their operands and options, for tools: `help --json`.
struct CommandListing: JSONObject {
  /// A command, after those that lead to it.
  let path: [CommandDescription]

  var propertyList: PropertyListValue {
    let below = path[path.count - 1].paths(below: Array(path.dropLast()))
    return .object(["commands": below.map(ListedCommand.init)])
  }
}

private struct ListedCommand: JSONObject {
  let path: [CommandDescription]

  var propertyList: PropertyListValue {
    let command = path[path.count - 1]
    return .object([
      "name": path.map(\.name).joined(separator: " "), "help": command.abstract,
      "operands": command.operands, "options": CommandDescription.shownOptions(at: path),
    ])
  }
}

extension ArgumentDescription: JSONObject {
  var propertyList: PropertyListValue {
    let isOption = place == .option
    return .object([
      "name": isOption ? "--\(name)" : name, "help": help, "letter": letter.map { "-\($0)" },
      "value": isOption && kind != nil ? valueName : nil,
      "values": kind.flatMap { $0.choices.isEmpty ? nil : $0.choices },
      "standard": standard, "isRequired": isOption ? isRequired : !isOptional,
      "isRepeated": isRepeating, "isCommandLine": place == .tail,
    ])
  }
}
