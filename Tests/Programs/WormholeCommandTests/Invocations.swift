import Testing

@testable import WormholeCommand

/// Shorthands for parsing the lines of the real description.
struct Invocations {
  var variables: [String: String] = ["WORMHOLE_GROUP": "group.test"]

  func parse(_ arguments: [String]) throws(UsageError) -> ArgumentParser.Invocation {
    try ArgumentParser.parse(
      arguments.map { Array($0.utf8) }, root: CommandDescription.root,
      variable: { variables[$0] })
  }

  func arguments(_ arguments: String...) throws -> ParsedArguments {
    guard case .run(_, let parsed) = try parse(arguments) else {
      throw UsageError(reason: "this is no command to run", path: [CommandDescription.root])
    }
    return parsed
  }

  /// Returns why the line is refused, or nil if it is accepted.
  func refusal(_ arguments: String...) -> String? { refusal(arguments) }

  func refusal(_ arguments: [String]) -> String? {
    do {
      _ = try parse(arguments)
      return nil
    } catch {
      return error.reason
    }
  }
}
