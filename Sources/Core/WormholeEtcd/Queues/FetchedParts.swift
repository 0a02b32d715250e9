import Synchronization
import Wormhole
package import WormholeSystem

/// The written parts of files that come through etcd, from before their consumer ended or etcd
/// became unreachable: open files without names. Each piece in them is compared before it is used.
package final class FetchedParts: Sendable {
  private let files = Mutex<[String: SharedDescriptor]>([:])

  package init() {}

  /// Keeps the fetched parts of an attachment.
  ///
  /// - Parameter file: At its beginning.
  package func keep(_ id: String, _ file: consuming FileDescriptor) {
    let file = SharedDescriptor(file)
    files.withLock { $0[id] = file }
  }

  /// Hands out the fetched parts of an attachment; nil if there are none.
  func take(_ id: String) -> SharedDescriptor? { files.withLock { $0.removeValue(forKey: id) } }
}
