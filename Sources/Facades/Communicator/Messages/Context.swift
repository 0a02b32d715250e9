/// One side's state for the other. The latest context replaces the previous one, on the way and at
/// the other side, and outlives both processes.
///
/// Requires at least `.backgroundOnly`.
///
/// ```swift
/// Context.observe { context in print(context.content["film"] ?? "none") }
/// try Communicator.shared.sync(Context(content: ["film": "Metropolis"]))
/// ```
public struct Context: Sendable {
  let payload: SharedContent

  /// The content; empty if a property list cannot hold it: then `sync` throws
  /// `WCError.payloadUnsupportedTypes`.
  public var content: Content { payload.content }

  /// Creates a context with content.
  public init(content: Content) { payload = SharedContent(content) }
}

extension Context: Observable {
  /// The observers of received contexts; the latest context waits for the first observer.
  public static let observations = Observations<Self>(keeping: 1)
}

extension Context: CustomStringConvertible {
  public var description: String { "Context(\(content))" }
}
