import AppGroup
import Synchronization

/// What a channel has published itself, so that its echo can be told apart: the version says which
/// publication a message is, and is noted just before the message can be seen.
final class OwnVersions: Sendable {
  // Only the latest can still be current; a few more for listeners that are slow to look.
  private static let remembered = 64
  private let versions = Mutex<[Version]>([])

  func add(_ version: Version) {
    versions.withLock { versions in
      versions.append(version)
      if versions.count > Self.remembered { versions.removeFirst() }
    }
  }

  func contains(_ version: Version) -> Bool {
    versions.withLock { $0.contains(version) }
  }
}
