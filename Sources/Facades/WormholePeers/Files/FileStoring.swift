import Synchronization
import Wormhole
import WormholeSystem

/// The wait until a file's content is safe in the container.
final class FileStoring: Waiting {
  private let transfer: PeerFileTransfer
  private let deadline: ContinuousClock.Instant?
  private let latch = WakeLatch()
  private var ending: QueueEndWait?
  private var failures = 0

  /// How often to look whether this process has given up.
  private static let slice: Duration = .seconds(1)
  /// How long to wait for descriptors, and how often.
  private static let pause: Duration = .milliseconds(200)
  private static let pauses = 50

  init(_ transfer: PeerFileTransfer, until deadline: ContinuousClock.Instant?) {
    self.transfer = transfer
    self.deadline = deadline
  }

  func step() throws -> WaitingStep<QueueEntryStatus> {
    do {
      let ending =
        try self.ending
        ?? QueueEndWait(for: transfer.entry, of: transfer.files.intentions(), until: deadline)
      self.ending = ending
      let step = try ending.step()
      guard case .wait(let latch, let until) = step else { return step }
      failures = 0
      if let halt = transfer.state.withLock(\.halt) { throw halt }
      let slice = ContinuousClock.now + Self.slice
      return .wait(for: latch, until: min(until ?? slice, slice))
    } catch {
      let known = transfer.state.withLock { $0 }
      // This process knows it, although it cannot look.
      if known.isStored { return .done(.processed) }
      failures += 1
      guard (error as? AppGroupError)?.code == .tooManyOpenFiles, known.halt == nil,
        failures < Self.pauses
      else { throw known.halt ?? error }
      return .wait(for: latch, until: .now + Self.pause)
    }
  }
}
