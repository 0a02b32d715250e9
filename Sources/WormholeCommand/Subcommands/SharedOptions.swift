import AppGroup

/// Arguments that several commands have in common.
extension OptionDescription {
  static let count = value(
    "count", "n", .count, help: "Stop after this many; without it, never.")

  static let timeout = value(
    "timeout", "seconds", .seconds,
    help: "Give up after this time, with exit status 124; without it, never.")

  static let json = flag("json", help: "Print one line of JSON instead of text for people.")

  /// - Parameter what: what is to survive.
  static func durable(_ what: String) -> OptionDescription {
    flag("durable", help: "Return only when \(what) would survive a loss of power.")
  }
}

extension PositionalDescription {
  static let file = PositionalDescription(
    name: "file",
    help: "A file or directory; it need not exist, but the directory it is in has to.",
    kind: .file)

  static let identifier = PositionalDescription(
    name: "identifier", help: "The name of the message; any text.", kind: .identifier)

  static let notificationName = PositionalDescription(
    name: "name", help: "The name of the notification; any text.", kind: .identifier)

  static let notificationNames = PositionalDescription(
    name: "name", help: "The names of the notifications; any text.", kind: .identifier,
    isRepeating: true)
}

extension ParsedArguments {
  var durability: Durability { has("durable") ? .durable : .standard }
}
