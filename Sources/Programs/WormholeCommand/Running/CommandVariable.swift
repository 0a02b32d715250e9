import FoundationEssentials

/// The variables in the environment of a command that is run for what has come.
enum CommandVariable {
  /// The name under which it came: of a message, a queue or a log.
  static let identifier = "WORMHOLE_IDENTIFIER"
  /// When it was sent, as ISO 8601.
  static let time = "WORMHOLE_TIME"
  /// Who sent it.
  static let sender = "WORMHOLE_SENDER"
  /// 1 for what was delivered before, else 0.
  static let redelivery = "WORMHOLE_REDELIVERY"
  /// The number of deliveries, this one included.
  static let deliveries = "WORMHOLE_DELIVERIES"
  /// The number of the exclusive entering under which the command runs: see `Presence.Fence`.
  static let fence = "WORMHOLE_FENCE"

  /// - Returns: "NAME=value", without NUL, which would end it.
  static func assignment(_ name: String, _ value: String) -> String {
    "\(name)=\(value.filter { $0 != "\0" })"
  }

  /// Those of everything that has a name; empty where it is not known.
  static func common(identifier: String, time: Date?, sender: String?) -> [String] {
    [
      assignment(Self.identifier, identifier),
      assignment(Self.time, time.flatMap(ISO8601.text) ?? ""),
      assignment(Self.sender, sender ?? ""),
    ]
  }
}
