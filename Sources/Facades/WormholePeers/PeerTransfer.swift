public import Wormhole

/// The calls that a message and a file on its way to a peer share; see `PeerMessageTransfer` and
/// `PeerFileTransfer` for the errors and costs of each call.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let transfers: [any PeerTransfer] = [
///   try await phone.enqueue(["film": "Metropolis"], to: "watch"),
///   try phone.transfer(fileAt: file, to: "watch"),
/// ]
/// for transfer in transfers { print(transfer.id, try transfer.status()) }
/// ```
public protocol PeerTransfer: Sendable {
  /// Its name in this container, by which a later process of the sender finds it.
  var id: String { get }
  /// The receiver.
  var peer: String { get }
  /// The current status.
  func status() throws -> QueueEntryStatus
  /// Waits until it has ended.
  func finalStatus(until deadline: ContinuousClock.Instant?) async throws -> QueueEntryStatus
  /// Takes it back unless the peer has it already; returns whether that was in time.
  func cancel() throws -> Bool
  /// Forgets it once it has ended.
  func removeReceipt() throws
}

extension PeerMessageTransfer: PeerTransfer {}
extension PeerFileTransfer: PeerTransfer {}
