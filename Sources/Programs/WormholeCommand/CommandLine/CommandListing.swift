/// Commands with their operands and options, for tools: `help --json`.
struct CommandListing: Encodable {
  private let commands: [JSONObject]

  /// - Parameter path: A command, after those that lead to it.
  init(path: [CommandDescription]) {
    commands = path[path.count - 1].paths(below: Array(path.dropLast())).map { path in
      let command = path[path.count - 1]
      return [
        "name": path.map(\.name).joined(separator: " "), "help": command.abstract,
        "operands": command.operands, "options": CommandDescription.shownOptions(at: path),
      ]
    }
  }
}

extension ArgumentDescription: Encodable {
  func encode(to encoder: any Encoder) throws {
    let isOption = role == .option
    let members: JSONObject = [
      "name": isOption ? "--\(name)" : name, "help": help, "letter": letter.map { "-\($0)" },
      "value": isOption && kind != nil ? valueName : nil,
      "values": kind.flatMap { $0.choices.isEmpty ? nil : $0.choices },
      "standard": standard, "isRequired": isOption ? isRequired : !isOptional,
      "isRepeated": isRepeating, "isCommandLine": role == .tail,
    ]
    try members.encode(to: encoder)
  }
}
