import AppGroup
import Synchronization

/// What a channel has published itself, so that its echo can be told apart: the stamp says which
/// publication a message is, and is noted just before the message can be seen.
final class OwnStamps: Sendable {
  // Only the latest can still be current; a few more for listeners that are slow to look.
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
