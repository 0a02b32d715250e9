import Synchronization
import Wormhole
import WormholeSystem

/// An item's lease that this process has locked, with the accesses of one purpose that share it: such
/// accesses never wait for each other.
///
/// A lease is locked for a whole process, and an entry in it does not state its purpose. So the
/// process remembers here which entries are its own, and for what purpose they were made.
final class LeaseShare: Sendable {
  let lease: Lease
  private let key: Key
  private let publication = Mutex(())

  private struct Key: Hashable {
    let site: FileStatus.Identity
    let purpose: String
  }

  private struct Entry {
    let share: LeaseShare
    var count = 0
    /// Whether another access has found it; that one may not have made its entry yet.
    var wasFound = false
  }

  private struct Table {
    var shares: [Key: Entry] = [:]
    var purposes: [LeaseDeclaration: String] = [:]
  }

  private static let table = Mutex(Table())

  init(_ lease: Lease, at site: ItemSite, for purpose: String) {
    self.lease = lease
    key = Key(site: site.identity, purpose: purpose)
  }

  /// Returns the lease that another access of the purpose has; nil if there is none.
  static func find(at site: ItemSite, for purpose: String) -> LeaseShare? {
    let key = Key(site: site.identity, purpose: purpose)
    return table.withLock { table in
      // A forked child has a copy of the table.
      guard let share = table.shares[key]?.share,
        share.lease.declaration.identity == .current
      else { return nil }
      table.shares[key]?.wasFound = true
      return share
    }
  }

  /// Returns the purpose of an entry of this process; nil for any other.
  static func purpose(of entry: EntryName) -> String? {
    table.withLock { $0.purposes[entry.declaration] }
  }

  /// No other access finds a lease that was taken over: it accepts no entry.
  func forget() {
    Self.table.withLock { table in
      if table.shares[key]?.share === self { table.shares[key] = nil }
    }
  }

  func add(_ entry: EntryName) {
    Self.table.withLock { table in
      if table.shares[key]?.share !== self { table.shares[key] = Entry(share: self) }
      table.shares[key]?.count += 1
      table.purposes[entry.declaration] = key.purpose
    }
  }

  func rename(_ old: EntryName, to new: EntryName) {
    guard old.declaration != new.declaration else { return }
    Self.table.withLock { table in
      table.purposes[old.declaration] = nil
      table.purposes[new.declaration] = key.purpose
    }
  }

  /// - Returns: whether no other access has shared the lease.
  func remove(_ entry: EntryName) -> Bool {
    Self.table.withLock { table in
      table.purposes[entry.declaration] = nil
      guard var left = table.shares[key], left.share === self else { return false }
      left.count -= 1
      table.shares[key] = left.count > 0 ? left : nil
      return left.count == 0 && !left.wasFound
    }
  }

  /// One at a time.
  func publishing<Result: Sendable>(_ body: () throws -> Result) throws -> Result {
    try publication.withLock { _ in try body() }
  }
}
