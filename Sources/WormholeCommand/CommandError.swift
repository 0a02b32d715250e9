/// Why a subcommand could not do its work, and the status that says so to scripts.
struct CommandError: Error, Equatable, CustomStringConvertible {
  /// What was tried: "read", "publish".
  let verb: String
  /// What it was tried on, as the user named it.
  let object: String
  let reason: String
  let status: ExitStatus

  /// `cannot read seats: the file is damaged`; the program puts its name before it.
  var description: String { "cannot \(verb) \(object): \(reason)" }
}
