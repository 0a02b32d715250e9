public import Foundation

/// A messenger whose accesses are coordinated. So are those of `MMWormholeFileTransiting`: each
/// change takes the value's lease, and a reader gets a whole message without waiting. So the two
/// kinds share their messages, as in the original.
///
/// ```swift
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: "wormhole",
///   transitingType: .coordinatedFile)
/// ```
open class MMWormholeCoordinatedFileTransiting: MMWormholeFileTransiting {
  /// Kept for its callers: a message is always written in one step, and Linux has no data
  /// protection classes.
  open var additionalFileWritingOptions: NSData.WritingOptions = []

  override class func new(
    _ identifier: String?, _ directory: String?
  ) -> MMWormholeFileTransiting {
    MMWormholeCoordinatedFileTransiting(
      applicationGroupIdentifier: identifier, optionalDirectory: directory)
  }
}
