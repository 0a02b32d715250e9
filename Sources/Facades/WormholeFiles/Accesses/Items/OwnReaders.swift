import Synchronization
import WormholeSystem

/// The items that this process has locked to read them or to change them in place, with the purposes of
/// these accesses: a coordinator never waits for itself, or for another one of its purpose. The lock
/// does not state its purpose.
enum OwnReaders {
  struct Reading: Hashable, Sendable {
    fileprivate let item: FileStatus.Identity
    fileprivate let purpose: String
  }

  private static let counts = Mutex<[Reading: Int]>([:])

  static func begin(_ item: FileStatus, for purpose: String) -> Reading {
    let reading = Reading(item: item.identity, purpose: purpose)
    counts.withLock { $0[reading, default: 0] += 1 }
    return reading
  }

  static func end(_ reading: Reading) {
    counts.withLock { counts in
      let left = (counts[reading] ?? 0) - 1
      counts[reading] = left > 0 ? left : nil
    }
  }

  /// Whether all that have an item locked are accesses of this process with a given purpose, as far as
  ///  the kernel shows them: it does not show those of another namespace.
  ///
  /// - Complexity: one look at the kernel's locks if there is such a reader at all.
  static func alone(lock item: FileStatus, for purpose: String) throws(Errno) -> Bool {
    let reading = Reading(item: item.identity, purpose: purpose)
    guard let count = counts.withLock({ $0[reading] }) else { return false }
    let holders = try LockTable.current().holders(of: item)
    // The same before and after; otherwise another one may have taken the place of one that ended.
    return holders.count == count && holders.allSatisfy { $0 == Program.processID }
      && counts.withLock { $0[reading] } == count
  }
}
