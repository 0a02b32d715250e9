import Synchronization
import WormholeSystem

/// The path of the file that this process's last post of a name left, so that the next post renames
/// it without a look at the directory.
///
/// The path is only a guess: if another process has posted since, the file has another name, and the
/// poster looks. No descriptor is kept, because an open directory delays the event of its removal,
/// and observers elsewhere would stay with the removed one.
final class LastPost: Sendable {
  private struct Paths: Sendable {
    var current: ComposedPath
    /// The previous path, whose end becomes a name that was never used.
    var next: ComposedPath
  }

  private let paths = Mutex<Paths?>(nil)

  /// Gives the file a new name, if it still has the one that this process gave to it.
  ///
  /// - Returns: False if it is not known, or if another thread is about to rename it.
  func rename(at container: Int32) throws(Errno) -> Bool {
    guard var known = paths.withLock({ $0.take() }) else { return false }
    known.next.replaceEnd(with: Nonce.nextNumber())
    guard
      try ifPresent(
        WormholeSystem.rename(known.current, at: container, to: known.next, at: container)) != nil
    else { return false }
    swap(&known.current, &known.next)
    paths.withLock { $0 = known }
    return true
  }

  /// - Parameter path: Where the file is now. It ends with a nonce with all its digits.
  func remember(_ path: String) {
    let path = ComposedPath(pathBytes: Array(path.utf8))
    paths.withLock { $0 = Paths(current: path, next: path) }
  }
}

/// The notifications of a container that this process posted last.
final class LastPosts: ContainerMemory {
  let names = NameMemories { LastPost() }
}
