import Wormhole

/// The arguments of a command, checked against its description.
struct ParsedArguments: Sendable {
  /// The names that lead to the command, without the name of the program: `["notify", "post"]`.
  let commandPath: [String]
  /// The texts of positionals and options by name; of an option that was given twice, the last.
  let values: [String: [String]]
  let flags: Set<String>
  /// The words after `--`; nil without `--`.
  let tail: [String]?
  /// Nil only for a command that needs no container.
  private(set) var selectedContainer: ContainerSelection?

  var container: ContainerSelection {
    guard let selectedContainer else {
      preconditionFailure("'\(commandPath)' is described as a command without a container")
    }
    return selectedContainer
  }

  /// Returns the same arguments for a command whose calls to etcd end at a deadline; see
  /// `ContainerSelection.limit`.
  func limited(until deadline: ContinuousClock.Instant?) -> ParsedArguments {
    var arguments = self
    arguments.selectedContainer?.limit = CallLimit(deadline)
    return arguments
  }

  /// The path that the command works on; nil for a command that brings its own container.
  func usedPath() throws -> String? { try selectedContainer?.path() ?? text("file") }

  func has(_ flag: String) -> Bool { flags.contains(flag) }

  /// Whether a flag, or an option or operand with its value, is on the line.
  func isGiven(_ name: String) -> Bool { has(name) || values[name] != nil }

  func texts(_ name: String) -> [String] { values[name] ?? [] }

  func text(_ name: String) -> String? { values[name]?.last }

  func requiredText(_ name: String) -> String {
    guard let text = text(name) else {
      preconditionFailure("'\(name)' is not a required argument of '\(commandPath)'")
    }
    return text
  }

  func count(_ name: String) -> Int? { text(name).flatMap(ValueKind.count) }

  func seconds(_ name: String) -> Duration? { text(name).flatMap(ValueKind.seconds) }

  func unsigned(_ name: String) -> UInt64? { text(name).flatMap(ValueKind.unsigned) }
}
