import AppGroup
import Synchronization
import SystemCalls

/// This process's access to an item, until it is left or taken away: a directory in the item's site,
/// which this process keeps locked, and in which the private copy is.
///
/// It is made, taken away and consulted before publishing only under the site's lease, so of two
/// processes that exclude each other one has it. Whoever was suspended with a claim finds it gone
/// when it wants to publish. The kernel unlocks the claim of a process that dies.
final class Claim: Sendable {
  let site: ItemSite
  private let directory: FileDescriptor
  private let state: Mutex<ClaimName>
  private let isEnded = Atomic(false)
  private let handedOn = Atomic(false)

  /// Whether a program that has inherited the claim works on the item: as long as it runs the claim
  /// stands, whatever becomes of this process.
  var isHandedOn: Bool { handedOn.load(ordering: .acquiring) }

  var name: ClaimName { state.withLock { $0 } }
  var descriptor: Int32 { directory.rawValue }

  private init(_ site: ItemSite, _ directory: consuming FileDescriptor, _ name: ClaimName) {
    self.site = site
    self.directory = directory
    state = Mutex(name)
  }

  /// Makes a claim that nobody is in the way of.
  ///
  /// - Throws: `leaseLost` when the lease was taken away meanwhile: then somebody else may be.
  static func make(_ name: ClaimName, at site: ItemSite, under lease: Lease) throws -> Claim {
    let entry = try lease.makeDirectory()
    let held = lease.held.descriptor.rawValue
    do {
      let directory = try FileDescriptor.open(entry, at: held, [.readOnly, .directory, .noFollow])
      // Free: it is locked before anybody can know it, and never seen unlocked.
      _ = try directory.tryLock(.exclusive)
      try lease.moveOut(entry, toFree: name.text)
      return Claim(site, directory, name)
    } catch let error as Errno where error == .noSuchFile {
      throw lease.lost()
    }
  }

  /// Where the private copy is for programs.
  var copyPath: String {
    ItemSite.path(of: site.location) + "/" + name.text + "/" + site.location.name
  }

  /// Whether what is made in the claim inherits access control lists.
  func hasDefaultAccessList() throws(Errno) -> Bool {
    try FileMetadata.attributeNames(of: directory).contains(FileMetadata.defaultAccessList)
  }

  /// Says that this process now does something else.
  ///
  /// - Throws: `overtaken`.
  func become(_ kind: ClaimName.Kind, coversContents: Bool) throws {
    try become(name.becoming(kind, coversContents: coversContents))
  }

  /// Says that it belongs to another process from now on, which has inherited the claim's descriptor: then
  /// the kernel unlocks the claim when this process and that one have ended.
  ///
  /// - Throws: `overtaken`.
  func handOn(to process: ProcessIdentity) throws {
    handedOn.store(true, ordering: .releasing)
    try become(name.held(by: process))
  }

  private func become(_ new: ClaimName) throws {
    let old = name
    guard new != old else { return }
    do throws(Errno) {
      try rename(old.text, at: site.descriptor, to: new.text, at: site.descriptor)
    } catch {
      guard error == .noSuchFile else { throw error }
      throw overtaken()
    }
    state.withLock { $0 = new }
  }

  /// Whether nobody has taken it away; for sure only under the lease.
  func isStanding() throws(Errno) -> Bool {
    do throws(Errno) {
      return try fileStatus(name.text, at: site.descriptor).isSameFile(as: directory.status())
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  /// The error of a claim that was taken away.
  func overtaken() -> FileCoordinationError {
    let name = name
    var taker: LeaseHolder?
    do throws(Errno) {
      taker = try site.entries().lazy.compactMap { name.taker($0.name) }.first
    } catch {
      // Who it was is worth a sentence, not another error.
      taker = nil
    }
    return .overtaken("change the item", path: site.location.path, by: taker)
  }

  /// The name that the claim's directory has now: another one if it was taken away.
  private func currentName() throws(Errno) -> FileName? {
    if try isStanding() { return FileName(bytes: Array(name.text.utf8)) }
    let name = name
    return try site.entries().first { name.taker($0.name) != nil }?.name
  }

  /// Gives up the claim, with everything in it.
  ///
  /// - Complexity: two system calls for an empty one; else as many as there are files in it.
  func leave() throws {
    guard let current = try currentName() else { return }
    // At once out of everybody's way, however much is in it.
    let trash = ItemSite.trashPrefix + Nonce.next()
    do throws(Errno) {
      try rename(current, at: site.descriptor, to: trash, at: site.descriptor)
    } catch {
      // Taken away this very moment; whoever comes next sweeps it.
      guard error == .noSuchFile else { throw error }
      return
    }
    try TreeRemoval().remove(FileName(bytes: Array(trash.utf8)), at: site.descriptor)
  }

  /// Gives up a claim with nothing left in it; only under the lease.
  ///
  /// - Returns: false when there is something in it.
  func removeIfEmpty() throws(Errno) -> Bool {
    do throws(Errno) {
      try removeDirectory(name.text, at: site.descriptor)
      isEnded.store(true, ordering: .relaxed)
      return true
    } catch {
      guard error == .directoryNotEmpty || error == .alreadyExists else { throw error }
      return false
    }
  }

  /// Ends the access: gives up the claim, and removes the site if nobody else is there.
  func end() {
    guard !isEnded.exchange(true, ordering: .relaxed) else { return }
    do {
      try leave()
    } catch {
      // The access itself has ended already; what is left behind is swept by whoever comes next.
      Diagnostics.report(error)
    }
    site.removeReporting()
  }

  // A task that is cancelled just drops what it has.
  deinit { end() }
}
