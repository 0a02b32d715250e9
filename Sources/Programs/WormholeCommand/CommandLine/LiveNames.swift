/// A kind of names that exist at this moment: `ls` prints them, and a completion offers them.
enum LiveNames: String, Sendable {
  case value, notification, queue, log, presence, peer, claim
  /// Of defaults.
  case key, suite
  case group
  /// A claim or a presence, for `--while`.
  case role

  /// The kinds that `ls` prints.
  static let ofContainers: [LiveNames] = [.value, .notification, .queue, .log, .presence, .peer]
}
