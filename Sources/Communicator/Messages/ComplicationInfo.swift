/// What a watch's complication is to show: from the phone to the watch, which is woken for it while
/// the day's budget of 50 lasts.
///
/// Needs at least `.backgroundOnly`.
public struct ComplicationInfo: Sendable {
  /// Hears how the transfer has ended: with the number of updates that are left today, or an error.
  public typealias Completion = @Sendable (Result<Int, any Error>) -> Void

  let payload: Payload

  /// What it says; empty if it was made of what no property list can hold.
  public var content: Content { payload.content }

  /// Makes complication info.
  ///
  /// - Parameter content: what a property list can hold; transferring anything else fails with
  ///   `WCError.payloadUnsupportedTypes`.
  public init(content: Content) {
    payload = Payload(content)
  }
}

extension ComplicationInfo {
  private static let key = "__complication_info__"

  var wire: Payload { payload.wrapped(under: Self.key) }

  init?(wire: Content) {
    guard let content = wire[Self.key] as? Content else { return nil }
    self.init(content: content)
  }
}

extension ComplicationInfo: Observable {
  /// Who observes complication info that comes; up to 64 wait for the first who does.
  public static let observations = Observations<Self>(keeping: 64)
}

extension ComplicationInfo: CustomStringConvertible {
  public var description: String { "ComplicationInfo(\(content))" }
}
