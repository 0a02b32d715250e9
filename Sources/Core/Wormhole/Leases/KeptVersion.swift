import Synchronization
import WormholePropertyLists
package import WormholeSystem

/// `lease/kept-<boot>`: a version of a value that is known to be on the disk, in case the power
/// fails, or the file system is lost, before the last version is.
///
/// Waiting for the disk in each publication would make a hot value as slow as its disk. So a
/// publication without a wait is allowed, but only if there is a kept version that was published
/// less than a second before. The disk has therefore seen a prefix of the publications:
///
/// | last publication on the disk | content of `value.plist` | a reader gets |
/// |---|---|---|
/// | one that waited | its content | that content |
/// | one that did not wait, with its content | its content | that content |
/// | one that did not wait, without | nothing, zeros, or a part | the kept version, at most a second older |
/// | a removal | – | no value, because no reader looks for a kept version without a file |
///
/// The kept version is a second name of a published file, given under the lease and through its
/// descriptor (rule 2), so it is never a file that a late holder did not publish. There is at most
/// one, because a holder removes the versions of earlier boots before it gives the name.
///
/// Missing content is the only evidence of a loss: a file system can be lost and mounted again
/// while the machine keeps running, and no mark that all processes share distinguishes one mount
/// from the next.
package enum KeptVersion {
  package static let prefix = "kept-"
  /// Its name in `lease/`; nil if boots cannot be distinguished.
  static let name: String? = ProcessIdentity.boot.isEmpty ? nil : prefix + ProcessIdentity.boot
  /// The same, seen from `lease/held`.
  fileprivate static let nameFromHeld = name.map { "../" + $0 }
  /// The time after its publication in which other publications need not wait.
  static let freshness: Duration = .seconds(1)
  /// The publication of larger content always waits.
  package static let maximumBytes = PreparedContent.worthwhileBytes

  /// Returns whether a file's content, or a part of it, never reached the disk: a block is zeros, or the
  /// end is missing.
  package static func isMissing(_ content: [UInt8]) -> Bool {
    if content.isEmpty || content.isCutOffPropertyList { return true }
    guard PublishedContent.hasEmptyBlock(content) else { return false }
    // Content with a record says so if it really has such blocks. Other content is not this package's.
    var document = content
    if let record = PublicationRecord.take(from: &document) { return !record.hasEmptyBlocks }
    do throws(PropertyListError) { _ = try PropertyListValue(bytes: document) } catch {
      return true
    }
    return false
  }

  fileprivate static func isMissing(in file: borrowing FileDescriptor) throws(Errno) -> Bool {
    let size = try file.status().size
    guard size <= maximumBytes else { return false }
    return isMissing(try file.readToEnd(expectedBytes: Int(size), maximumBytes: maximumBytes))
  }

  /// Returns the name of the kept version, which stands for content that never reached the disk; nil if
  /// there is none.
  ///
  /// - Parameter lease: The directory `lease`, open for reading.
  package static func standIn(in lease: borrowing FileDescriptor) throws(Errno) -> String? {
    let names = try lease.entries().map(\.name.text).filter { $0.hasPrefix(prefix) }
    return names.first { $0 == name } ?? names.first
  }
}

/// The extent to which a publication waits for the disk.
package enum SyncLevel {
  /// Waits until it would survive a loss of power.
  case durable
  /// Waits until the content is written, so that after a loss of power the value is old or new.
  case written
  /// Does not wait if there is a fresh kept version; otherwise waits as `written`, and the content
  /// becomes the next kept version.
  ///
  /// - Parameter isFollowedUp: Whether this process will flush the value to the disk in a moment.
  case relaxed(isFollowedUp: Bool)
}

extension Lease {
  /// Returns whether content may be published without waiting for the disk.
  func hasFreshKeptVersion() throws(Errno) -> Bool {
    var published = keptVersion.withLock(\.self)
    if published == nil { published = try lookForKeptVersion() }
    guard let published else { return false }
    let time = WallTime(seconds: published.seconds, nanoseconds: published.nanoseconds)
    let age = realTime() - time
    return age >= .zero && age < KeptVersion.freshness
  }

  private func lookForKeptVersion() throws(Errno) -> Stamp? {
    guard let name = KeptVersion.nameFromHeld,
      let status = try ifPresent(fileStatus(name, at: held.descriptor.rawValue)),
      status.kind == .regular
    else { return nil }
    let published = Stamp(status)
    keptVersion.withLock { $0 = published }
    return published
  }

  /// Gives the content that is about to be published a second name in the lease.
  ///
  /// - Returns: nil if the file system has no such names: then every publication waits.
  func nameTwice(_ staged: String) throws(Errno) -> String? {
    guard KeptVersion.name != nil else { return nil }
    let second = nextEntry()
    do throws(Errno) {
      let directory = stagingPlace.directory
      try link(staged, at: directory, to: second, at: directory)
      return second
    } catch {
      switch error {
      case .notPermitted, .unsupported, .tooManyNames, .noFunction, .accessDenied: return nil
      default: throw error
      }
    }
  }

  /// Makes content that is published, and on the disk, the kept version.
  ///
  /// If that fails, the value stays as published, the next publication waits again, and the next
  /// holder removes the leftover in the lease.
  func keep(_ entry: String) {
    guard let name = KeptVersion.nameFromHeld else { return }
    let held = held.descriptor.rawValue
    do throws(Errno) {
      if try !exists(name, at: held) { try removeEarlier() }
      try rename(entry, at: stagingPlace.directory, to: name, at: held)
    } catch {
      return
    }
  }

  private func removeEarlier() throws(Errno) {
    let lease = try site.openLeaseDirectory()
    // Not this boot's: a holder that was stopped here may have lost the lease, and others published
    // without waiting since.
    for entry in try lease.remainingEntries()
    where entry.name.hasPrefix(KeptVersion.prefix) && entry.name.text != KeptVersion.name {
      try removeFile(entry.name, at: lease.rawValue)
    }
  }

  /// Removes the kept version before its value is removed, or is replaced by a durable one: no older
  /// version may stand in for content that is published after that. The published content then has
  /// no kept version, so it is written first, or, if it is lost, replaced by the kept version.
  ///
  /// - Parameter value: The value's file.
  /// - Throws: `leaseLost`.
  package func dropKept(of value: String) throws {
    guard let name = KeptVersion.nameFromHeld else { return }
    let held = held.descriptor.rawValue
    // If one of the steps finds no kept version, the lease may be gone, which the removal itself
    // detects.
    guard try exists(name, at: held) else { return }
    var isLost = false
    do throws(Errno) {
      let file = try FileDescriptor.open(
        site.layout.fromHeld(value), at: held, [.readOnly, .noFollow, .nonBlocking])
      isLost = try KeptVersion.isMissing(in: file)
      try file.writeBack()
    } catch {
      // It is removed in any case. Only a process that is killed right here would leave it damaged.
    }
    if isLost { try putBack(name, as: value) }
    try dropKept()
  }

  /// Publishes the kept version again.
  ///
  /// - Returns: Whether there is one.
  /// - Throws: `leaseLost`.
  package func putBackKept(as value: String) throws -> Bool {
    let lease = try site.openLeaseDirectory()
    guard let name = try KeptVersion.standIn(in: lease) else { return false }
    try putBack("../" + name, as: value)
    return true
  }

  private func putBack(_ kept: String, as value: String) throws {
    let (entry, staging) = (nextEntry(), stagingPlace.directory)
    try failingAsLost { () throws(Errno) in
      try link(kept, at: held.descriptor.rawValue, to: entry, at: staging)
    }
    try moveOut(entry, to: value, .exchange)
  }

  /// Removes the kept version of a value that has no file.
  func dropKept() throws(Errno) {
    guard let name = KeptVersion.nameFromHeld else { return }
    let held = held.descriptor.rawValue
    let (entry, staging) = (nextEntry(), stagingPlace.directory)
    keptVersion.withLock { $0 = nil }
    if try ifPresent(rename(name, at: held, to: entry, at: staging)) != nil {
      try removeIfPresent(entry, at: staging)
    }
  }
}
