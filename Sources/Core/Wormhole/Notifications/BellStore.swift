package import WormholeSystem

/// The implementation of a notification: a file that is renamed, or a key on etcd.
///
/// Errors of the kernel and of etcd are thrown unchanged; the callers put them into a sentence.
package protocol BellStore: Sendable {
  /// The directory's path, or a description of the key.
  var path: String { get }

  /// Posts.
  func ring() throws
  func sound() throws -> BellSound

  /// Listens from now on.
  ///
  /// - Parameter signal: Called when there may have been a post, on a thread that must not wait.
  func listen(_ signal: @escaping @Sendable () -> Void) throws -> any BellWatching
}

/// A bell that is being listened to.
package protocol BellWatching: Watching {
  /// Returns the sound as of now, or later than the last signal.
  func sound() throws -> BellSound
}

/// The marks of a bell at one moment; equal as long as no process has rung. A bell that was never
/// rung has none.
package typealias BellSound = Set<FileName>
