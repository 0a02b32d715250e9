import AppGroup

/// The wait until a file's content is safe in the container.
final class FileStoring: Waiting {
  private let transfer: PeerFileTransfer
  private let deadline: ContinuousClock.Instant?
  private let latch = WakeLatch()
  private var ending: QueueEndWait?
  private var failures = 0

  /// How long nobody looks whether this process has given up.
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
        ?? QueueEndWait(for: transfer.entry, of: transfer.files.sender(), until: deadline)
      self.ending = ending
      let step = try ending.step()
      guard case .wait(let latch, let until) = step else { return step }
      failures = 0
      if let halt = transfer.process.halt { throw halt }
      let slice = ContinuousClock.now + Self.slice
      return .wait(for: latch, until: min(until ?? slice, slice))
    } catch {
      // Known here, although nobody can look.
      if transfer.process.isStored { return .done(.processed) }
      failures += 1
      guard (error as? AppGroupError)?.code == .tooManyOpenFiles, transfer.process.halt == nil,
        failures < Self.pauses
      else { throw transfer.process.halt ?? error }
      return .wait(for: latch, until: .now + Self.pause)
    }
  }
}

/// The wait until a file's transfer has ended: first until it is stored, and then until its peer has it.
final class FileEnding: Waiting {
  private let transfer: PeerFileTransfer
  private let deadline: ContinuousClock.Instant?
  private var storing: QueueEndWait?
  private var ending: QueueEndWait?

  init(_ transfer: PeerFileTransfer, until deadline: ContinuousClock.Instant?) {
    self.transfer = transfer
    self.deadline = deadline
  }

  func step() throws -> WaitingStep<QueueEntryStatus> {
    if let ending { return try ending.step() }
    let storing =
      try self.storing
      ?? QueueEndWait(for: transfer.entry, of: transfer.files.sender(), until: deadline)
    self.storing = storing
    let step = try storing.step()
    guard case .done(let first) = step else { return step }
    guard first == .processed else { return .done(first == .taken ? .stored : first) }
    guard let stored = try transfer.storedEntry() else { return .done(.processed) }
    let ending = QueueEndWait(
      for: stored, of: try transfer.files.sender(to: transfer.peer), until: deadline)
    self.ending = ending
    return try ending.step()
  }
}
