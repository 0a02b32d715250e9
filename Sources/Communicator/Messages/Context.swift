/// What one side is to know of the other: the latest replaces the one before, on the way and at the
/// other side, and outlives both processes.
///
/// Needs at least `.backgroundOnly`.
public struct Context: Sendable {
  let payload: Payload

  /// What it says; empty if it was made of what no property list can hold.
  public var content: Content { payload.content }

  /// Makes a context.
  ///
  /// - Parameter content: what a property list can hold; `sync` of anything else throws
  ///   `WCError.payloadUnsupportedTypes`.
  public init(content: Content) {
    payload = Payload(content)
  }
}

extension Context: Observable {
  /// Who observes contexts that come; the latest waits for the first who does.
  public static let observations = Observations<Self>(keeping: 1)
}

extension Context: CustomStringConvertible {
  public var description: String { "Context(\(content))" }
}
