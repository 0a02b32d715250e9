public import WormholePropertyLists

extension Counterpart {
  /// How a counterpart handles a message.
  ///
  /// ```swift
  /// let script: [Counterpart.Step] = [.answer(["verified": true]), .isDeaf, .dies]
  /// let watch = scene.counterpart(.watch, script: script)
  /// ```
  public struct Step: Sendable {
    enum Action: Sendable {
      case answer(@Sendable (Received) -> PropertyListValue, after: Gate?)
      case refuse
      case letGo
      case ignore
      case die
    }

    let action: Action

    /// Replies with a value: a dictionary to a dictionary, `.data(…)` to data. Has no effect on a
    /// message that expects no reply.
    ///
    /// - Parameters:
    ///   - reply: the reply.
    ///   - gate: a slow counterpart waits until the test opens it.
    public static func answer(_ reply: PropertyListValue = [:], after gate: Gate? = nil) -> Step {
      Step(action: .answer({ _ in reply }, after: gate))
    }

    /// Replies with the result of a function of the message.
    public static func answer(
      after gate: Gate? = nil, _ reply: @escaping @Sendable (Received) -> PropertyListValue
    ) -> Step {
      Step(action: .answer(reply, after: gate))
    }

    /// Takes the message like a delegate without a method for it: its sender gets `deliveryFailed`.
    public static let refuses = Step(action: .refuse)
    /// Releases the reply handler without a call: its sender gets `messageReplyTimedOut` at once.
    public static let letsGo = Step(action: .letGo)
    /// Is deaf: reachable, but never replies. The sender of a message that expects no reply learns
    /// that it was delivered, because it was.
    public static let isDeaf = Step(action: .ignore)
    /// Dies in the middle of the reply, as if by SIGKILL: see `Counterpart.die()`.
    public static let dies = Step(action: .die)
  }
}
