import Synchronization
package import Wormhole
package import WormholeSystem
import WormholeToolkit

/// This process's access to an item, until it ends or is taken over: a directory in the item's site
/// that this process keeps locked, and that contains the private copy.
///
/// It is made, taken over and checked before publishing only under the site's lease, so of two
/// processes that exclude each other only one has it. A suspended process finds its claim gone when
/// it tries to publish. The kernel unlocks the claim of a process that dies.
package final class Claim: Sendable {
  let site: ItemSite
  private let directory: SharedDescriptor
  private let state: Mutex<ClaimName>
  private let isEnded = Atomic(false)
  private let handedOn = Atomic(false)
  /// Whether its site is to be kept after it has ended.
  private let keepsSite = Atomic(false)

  /// Whether a program that has inherited the claim works on the item: the claim stands as long as
  /// the program runs, even if this process does not.
  package var isHandedOn: Bool { handedOn.load(ordering: .acquiring) }

  var name: ClaimName { state.withLock { $0 } }
  /// A program that works on the item itself inherits it (`ChildProcess`): the claim stands as long
  /// as the program and its children run, even if this process is killed or stopped. They are
  /// killed before a takeover, because they are stopped or the term is over.
  package var descriptor: Int32 { directory.descriptor.rawValue }

  package func status() throws(Errno) -> FileStatus { try directory.descriptor.status() }

  private init(_ name: ClaimName, at site: ItemSite, _ directory: SharedDescriptor) {
    self.site = site
    self.directory = directory
    state = Mutex(name)
  }

  /// Makes a claim, unless another claim excludes it.
  ///
  /// - Throws: `leaseLost` if the lease was taken over: another process may then have a claim.
  static func make(_ name: ClaimName, at site: ItemSite, under lease: Lease) throws -> Claim {
    do {
      let (entry, directory) = try site.takeSpare() ?? makeDirectory(under: lease)
      try lease.moveOut(entry, toFree: name.text)
      site.keepOpen(lease, with: name.text)
      return Claim(name, at: site, directory)
    } catch let error as Errno where error == .noSuchFile {
      throw lease.lost()
    }
  }

  private static func makeDirectory(under lease: Lease) throws -> KeptSite.Spare {
    let entry = try lease.makeDirectory()
    let directory = try FileDescriptor.open(
      entry, at: lease.held.descriptor.rawValue, [.readOnly, .directory, .noFollow])
    // Free: it is locked before another process can know of it, and never seen unlocked.
    _ = try directory.tryLock(.exclusive)
    return (entry, SharedDescriptor(directory))
  }

  /// The path of the private copy, for programs.
  package var copyPath: String {
    NameWriter.text(joining: [site.path, "/", name.text, "/", site.itemName])
  }

  /// Whether entries of the claim inherit access control lists.
  func hasDefaultAccessList() throws(Errno) -> Bool {
    try FileMetadata.areInherited(in: directory.descriptor)
  }

  /// Declares that this process is about to publish its copy.
  ///
  /// - Parameter coversContents: whether the directory's contents are claimed from now on.
  /// - Throws: `overtaken`.
  func beginPublishing(coversContents: Bool = false) throws {
    try change {
      $0.changed(kind: .publishing, coversContents: $0.coversContents || coversContents)
    }
  }

  /// Declares the process that has inherited the claim, so that others can name it and see that it
  /// is stopped: the kernel unlocks the claim when both this process and that one have ended.
  ///
  /// - Parameter process: one that has already ended is not named.
  /// - Throws: `overtaken` if the access was taken over and the program killed.
  package func handOn(toProcess process: Int32) throws {
    guard let status = ProcessStatus.of(process) else { return }
    handedOn.store(true, ordering: .releasing)
    try declare(status.identity)
  }

  /// Declares the process whose stop lets others take over an access to a private copy: the program
  /// working on the copy while that program is stopped, otherwise this process.
  ///
  /// - Throws: `overtaken`.
  package func follow(_ process: Int32) throws {
    let program = ProcessStatus.of(process)
    try declare(program?.isStopped == true ? program?.identity ?? .current : .current)
  }

  private func declare(_ process: ProcessIdentity) throws {
    try change { $0.changed(declaration: $0.declaration.held(by: process)) }
  }

  /// Wishes for a grace other than `LeaseRequest.graceAtTerminal` for this process and its program,
  /// when a person has stopped them at a terminal.
  ///
  /// - Complexity: one system call, and a few more at the end of the access.
  package func wish(grace: Duration) throws(Errno) {
    try WormholeSystem.makeDirectory(ClaimName.entry(ofGrace: grace), at: descriptor)
  }

  /// Gives the claim another name: see `ItemAccess.renew`.
  func renew() throws { try change { $0.changed(declaration: $0.declaration.renewed()) } }

  private func change(_ edit: (ClaimName) -> ClaimName) throws {
    let old = name
    let new = edit(old)
    guard new != old else { return }
    guard
      try ifPresent(rename(old.text, at: site.descriptor, to: new.text, at: site.descriptor)) != nil
    else { throw overtaken() }
    site.closeKept()
    state.withLock { $0 = new }
  }

  /// Whether the claim was not taken over; certain only under the lease.
  package func isStanding() throws(Errno) -> Bool {
    try ifPresent(
      fileStatus(name.text, at: site.descriptor).isSameFile(as: directory.descriptor.status()))
      ?? false
  }

  package func overtaken() -> WormholeError {
    let name = name
    // The taker's name is not worth another error.
    let taker = (try? site.entries().lazy.compactMap { name.taker($0.name) }.first) ?? announced
    return .overtaken(
      "change the item", path: site.location.text,
      by: taker.map { LeaseHolder(identity: $0.identity, held: nil) }, ago: taker?.age,
      because: reason(of: name, taker))
  }

  /// The process that kills the heirs of the claim, to take it over.
  var announced: LeaseDeclaration? {
    // Without an answer, no process is named.
    (try? directory.descriptor.taker(of: name)) ?? nil
  }

  private func reason(of name: ClaimName, _ taker: LeaseDeclaration?) -> String {
    let declaration = name.declaration
    if let taker, declaration.isPastItsTerm(at: taker) {
      return "its term of \(declaration.term.tenthsOfSeconds) s was over"
    }
    let isSeen = taker?.identity.isVisible ?? true
    return "\(isHandedOn ? "the command" : "this process") was stopped"
      + (isSeen ? "" : ", or could not be seen from there")
  }

  /// Gives up the claim, with everything in it.
  ///
  /// - Complexity: two system calls for an empty one; otherwise as many as it contains files.
  private func leave() throws {
    let name = name
    // After a takeover the directory has another name.
    let current =
      try isStanding()
      ? FileName(name.text) : site.entries().first { name.taker($0.name) != nil }?.name
    guard let current else { return }
    // In one step, however large it is: from now on it excludes no other process.
    let trash = ItemSite.trashPrefix + Nonce.next()
    // Otherwise it was just taken over; the next process removes it.
    guard try ifPresent(rename(current, at: site.descriptor, to: trash, at: site.descriptor)) != nil
    else { return }
    try TreeRemoval().remove(FileName(trash), at: site.descriptor)
  }

  /// Ends the access if the claim is empty, and removes or keeps the site if no other process uses
  /// it; in one step for others, because this process has the lease.
  ///
  /// - Parameter maySiteStay: whether the item may be changed again.
  func endIfEmpty(under lease: Lease, maySiteStay: Bool) {
    do {
      if try maySiteStay && !isHandedOn && site.endWarm(name.text, directory, under: lease) {
        keepsSite.store(true, ordering: .relaxed)
        return
      }
      try removeDirectory(name.text, at: site.descriptor)
      if try site.removeIfUnused(under: lease, without: name) {
        isEnded.store(true, ordering: .relaxed)
      }
    } catch {
      // It is not empty, or removing it failed otherwise: `end` tries once more, without the lease
      // because there may be much to remove, and then reports the error.
      return
    }
  }

  /// Ends the access: gives up the claim, and leaves the site to a removal.
  func end(_ removal: SiteRemoval) {
    guard !isEnded.exchange(true, ordering: .relaxed) else { return }
    // Only now, because the lease under which the claim ended is released.
    if keepsSite.load(ordering: .relaxed) {
      if !KeptSites.shared.keep(site) { removal.add(site) }
      return
    }
    // The access itself has already ended; the next process removes the leftovers.
    Diagnostics.reporting(leave)
    removal.add(site)
  }

  // A task that is cancelled only releases the claim.
  deinit { end(SiteRemoval()) }
}

/// The name of a claim's directory. It describes the owner, so the description costs no write:
/// `claim-<kind>-<declaration>-<purpose>`.
package struct ClaimName: Hashable, Sendable {
  /// The owner's use of the item.
  package enum Kind: Character, Sendable {
    /// Changes a private copy: readers that begin meanwhile wait for its end.
    case copying = "w"
    /// Is about to publish its copy: new readers wait.
    case publishing = "p"
    /// Changes the item where it is: readers wait.
    case inPlace = "i"
    /// Shares the item with others, and keeps it from being changed.
    case sharing = "s"

    /// Whether two owners of different purposes exclude each other.
    func excludes(_ other: Kind) -> Bool {
      switch (self, other) {
      case (.sharing, .sharing), (.sharing, .copying), (.copying, .sharing): false
      default: true
      }
    }
  }

  package let kind: Kind
  /// Whether the directory's contents are claimed, too.
  let coversContents: Bool
  /// The owner, the beginning of the claim and its longest term.
  let declaration: LeaseDeclaration
  /// Owners of the same purpose do not exclude each other.
  package let purpose: String
  package let text: String

  package init(
    kind: Kind, coversContents: Bool, declaration: LeaseDeclaration, purpose: String
  ) {
    self.kind = kind
    self.coversContents = coversContents
    self.declaration = declaration
    self.purpose = purpose
    text = NameWriter.text(joining: [
      Self.prefix, String(kind.rawValue), coversContents ? "c-" : "-", declaration.name, "-",
      purpose,
    ])
  }

  fileprivate func changed(
    kind: Kind? = nil, coversContents: Bool? = nil, declaration: LeaseDeclaration? = nil
  ) -> ClaimName {
    ClaimName(
      kind: kind ?? self.kind, coversContents: coversContents ?? self.coversContents,
      declaration: declaration ?? self.declaration, purpose: purpose)
  }

  static let prefix = "claim-"
  static let overtakenPrefix = "overtaken-"
}

extension ClaimName {
  /// Whether an entry can only be a claim of a purpose; cheaper than reading its name.
  static func isOf(_ purpose: String, _ entry: FileName) -> Bool {
    entry.bytes.suffix(purpose.utf8.count + 1).elementsEqual(("-" + purpose).utf8)
  }

  /// Reads an entry's name; nil if it does not name a claim.
  package init?(_ entry: FileName) {
    guard entry.hasPrefix(Self.prefix) else { return nil }
    let fields = entry.text.split(separator: "-", omittingEmptySubsequences: false)
    guard fields.count == 10, let kind = fields[1].first.flatMap({ Kind(rawValue: $0) }),
      ["", "c"].contains(fields[1].dropFirst()),
      let declaration = LeaseDeclaration(
        FileName(fields[2...8].joined(separator: "-")))
    else { return nil }
    self.init(
      kind: kind, coversContents: fields[1].count == 2, declaration: declaration,
      purpose: String(fields[9]))
  }

  /// The owner, for waiting processes' error sentences.
  var holder: LeaseHolder { LeaseHolder(identity: declaration.identity, held: declaration.age) }

  /// Whether its owner has had it longer than declared.
  var isPastItsTerm: Bool { (declaration.age ?? .zero) >= declaration.term }

  /// The identifier of a coordinator's own purpose: a nonce.
  static func identifier(ofOwn purpose: String) -> String { ownPrefix + purpose }

  private static let ownPrefix = "coordinator-"

  /// The short form of a purpose identifier in a name: the unique part of a default one.
  package static func purpose(of identifier: String) -> String {
    if identifier.hasPrefix(ownPrefix) {
      let nonce = identifier.utf8.dropFirst(ownPrefix.utf8.count)
      if !nonce.isEmpty, nonce.count <= 16, nonce.allSatisfy(Nonce.isDigit) {
        return String(Substring(nonce))
      }
    }
    return String(SHA256.hexDigest(of: Array(identifier.utf8)).prefix(16))
  }

  // MARK: The remains of a claim that was taken over

  /// The name that a taker gives it; the late owner looks for this name.
  package func overtaken(by taker: LeaseDeclaration) -> String {
    Self.overtakenPrefix + nonce + "-" + taker.name
  }

  /// The taker, if an entry is the remains of this claim.
  func taker(_ entry: FileName) -> LeaseDeclaration? {
    let prefix = Self.overtakenPrefix + nonce + "-"
    guard entry.hasPrefix(prefix) else { return nil }
    return LeaseDeclaration(FileName(bytes: Array(entry.bytes.dropFirst(prefix.utf8.count))))
  }

  // MARK: The wish of its owner

  private static let gracePrefix = "grace-"

  fileprivate static func entry(ofGrace grace: Duration) -> String {
    gracePrefix + String(Int64(grace / .milliseconds(1)), radix: 16)
  }

  static func grace(_ entry: FileName) -> Duration? {
    guard entry.hasPrefix(gracePrefix) else { return nil }
    return Int64(entry.text.dropFirst(gracePrefix.count), radix: 16).map { .milliseconds($0) }
  }

  private var nonce: Substring { declaration.name.split(separator: "-").last ?? "" }
}
