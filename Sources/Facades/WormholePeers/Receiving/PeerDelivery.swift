public import FoundationEssentials

/// A delivery of a queue, to be acknowledged when it is handled: a `PeerMessage` or a `PeerFile`.
///
/// A delivery that is neither acknowledged, failed nor released is delivered again, marked, to the
/// next receiver. The first of these calls counts; further calls have no effect.
///
/// ```swift
/// func acknowledgeLate(_ delivery: any PeerDelivery) throws {
///   if delivery.isRedelivery { print("again, from \(delivery.sender)") }
///   try delivery.acknowledge()
/// }
/// ```
public protocol PeerDelivery: Sendable {
  /// The transfer's id.
  var id: String { get }
  /// The sender, by the name that it gave itself.
  var sender: String { get }
  /// When it was sent, by its sender's clock, which never goes back.
  var sent: Date { get }
  /// Whether it was delivered before, and perhaps handled: to a process that ended, was replaced,
  /// or gave it back.
  var isRedelivery: Bool { get }
  /// How often it was delivered, this time included.
  var deliveries: Int { get }

  /// Ends it as processed: it is never delivered again.
  ///
  /// - Throws: `PeerError`: `replaced` when another process receives now, which then gets it; or an
  ///   error of the container: the call may be repeated.
  func acknowledge() throws

  /// Ends it as failed: it is never delivered again, and its sender learns why.
  ///
  /// - Parameters:
  ///   - reason: the reason for the sender.
  ///   - isKept: whether it is kept, so that `PeerSession.failures(for:)` lists it, and
  ///     `retry(failure:)` sends it again.
  /// - Throws: as `acknowledge()`.
  func fail(_ reason: String, isKept: Bool) throws

  /// Gives it back: it is delivered again after a pause. Meanwhile other deliveries are made,
  /// including later ones of its sender.
  ///
  /// If the receiver has `maximumDeliveries`, and this was delivered that often, it ends as failed,
  /// and is kept.
  ///
  /// - Parameter pause: the minimum time before it is delivered again.
  /// - Throws: as `acknowledge()`.
  /// - Complexity: an open, a write and a close.
  func release(after pause: Duration) throws
}
