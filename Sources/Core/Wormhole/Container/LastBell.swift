import Synchronization
import WormholeSystem

/// The path of the file that this process's last post of a name left, so that the next post renames
/// it without a look at the directory.
///
/// The path is only a guess: if another process has posted since, the file has another name, and the
/// poster looks. No descriptor is kept, because an open directory delays the event of its removal,
/// and observers elsewhere would stay with the removed one.
final class LastBell: Sendable {
  private struct Paths: Sendable {
    /// The directory and the beginning of the file's name.
    let beginning: [UInt8]
    var current: ComposedPath
    /// Memory for the next path.
    var next: ComposedPath
  }

  private let paths = Mutex<Paths?>(nil)

  /// Gives the file a new name, if it still has the one that this process gave to it.
  ///
  /// - Returns: False if it is not known, or if another thread is about to rename it.
  func rename(at container: Int32) throws(Errno) -> Bool {
    let known = paths.withLock { paths in
      defer { paths = nil }
      return paths
    }
    guard var known else { return false }
    known.next.compose(known.beginning[...], Nonce.next())
    guard
      try ifPresent(
        WormholeSystem.rename(known.current, at: container, to: known.next, at: container)) != nil
    else { return false }
    swap(&known.current, &known.next)
    remember(known)
    return true
  }

  /// Remembers where the file is now.
  func remember(_ beginning: String, _ nonce: String) {
    let bytes = Array(beginning.utf8)
    let path = ComposedPath(pathBytes: bytes + nonce.utf8)
    remember(Paths(beginning: bytes, current: path, next: path))
  }

  private func remember(_ known: Paths) { paths.withLock { $0 = known } }
}

/// The last bells of a container by name, for programs that ask for a notification at each post.
final class LastBells: Sendable {
  private let bells = Mutex<[String: LastBell]>([:])
  /// Forgetting costs the next post a look at the directory.
  private static let limit = 64

  /// - Parameter path: The directory of the bell, relative to the container.
  func bell(at path: String) -> LastBell {
    bells.withLock { bells in
      if let known = bells[path] { return known }
      if bells.count >= Self.limit { bells = [:] }
      let bell = LastBell()
      bells[path] = bell
      return bell
    }
  }
}
