/// Content for a watch's complication. The phone sends it to the watch, which is woken while the
/// day's budget of 50 lasts.
///
/// Requires at least `.backgroundOnly`.
///
/// ```swift
/// Communicator.shared.transfer(ComplicationInfo(content: ["next": "20:15"])) { result in
///   if case .success(let left) = result { print(left, "are left today") }
/// }
/// ```
public struct ComplicationInfo: Sendable {
  /// Receives the outcome of the transfer: the number of updates left today, or an error.
  public typealias Completion = @Sendable (Result<Int, any Error>) -> Void

  let payload: SharedContent

  /// The content; empty if a property list cannot hold it: then the transfer fails with
  /// `WCError.payloadUnsupportedTypes`.
  public var content: Content { payload.content }

  /// Creates complication info with content.
  public init(content: Content) { payload = SharedContent(content) }
}

extension ComplicationInfo {
  private static let key = "__complication_info__"

  var wire: SharedContent { payload.wrapped(under: Self.key) }

  init?(wire: Content) {
    guard let content = wire[Self.key] as? Content else { return nil }
    self.init(content: content)
  }
}

extension ComplicationInfo: Observable {
  /// The observers of received complication info; up to 64 wait for the first observer.
  public static let observations = Observations<Self>(keeping: 64)
}

extension ComplicationInfo: CustomStringConvertible {
  public var description: String { "ComplicationInfo(\(content))" }
}
