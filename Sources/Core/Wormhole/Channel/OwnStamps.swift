import Synchronization

/// The publications of a channel, so that it can recognize its echoes. A stamp identifies a
/// publication and is noted just before the message becomes visible.
final class OwnStamps: Sendable {
  // Only the latest publication can be current; the others are for slow listeners.
  private static let remembered = 64
  private let stamps = Mutex<[Stamp]>([])

  func add(_ stamp: Stamp) {
    stamps.withLock { stamps in
      stamps.append(stamp)
      if stamps.count > Self.remembered { stamps.removeFirst() }
    }
  }

  func contains(_ stamp: Stamp) -> Bool {
    stamps.withLock { $0.contains(stamp) }
  }
}
