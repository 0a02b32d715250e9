import Synchronization
import WormholeSystem

/// The knowledge that no process is present, as long as the directory has not changed: every
/// registration changes its times. A time is trusted only if it was more than a second old at the
/// look, as in `SynchronizedNames`.
final class Vacancy: Sendable {
  private let known = Mutex<FileStatus?>(nil)

  /// - Parameter status: the directory's status just before it was found to be without members.
  func note(_ status: FileStatus) {
    guard status.modifiedSeconds < realTime().seconds - 1 else { return }
    known.withLock { $0 = status }
  }

  /// Returns whether the directory is unchanged since it was found to be without members.
  func isKnown(at directory: NamedDirectory) throws -> Bool {
    guard let known = known.withLock({ $0 }) else { return false }
    let container = try directory.root.handle().descriptor.rawValue
    return try ifPresent(fileStatus(directory.relativePath, at: container)) == known
  }
}
