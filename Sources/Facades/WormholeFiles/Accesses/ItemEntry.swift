import Synchronization
package import Wormhole
package import WormholeSystem
import WormholeToolkit

/// This process's access to an item, until it ends or is taken over: its own directory in the item's
/// lease, which declares it, and contains the private copy.
///
/// It is made through the lease's descriptor by the process that has locked it, and the copy is
/// published from there (rule 2). A takeover moves the directory out of the lease in one step. So a
/// process that was suspended finds its entry gone, and nothing of it is published. The kernel
/// unlocks the lease of a process that dies (Tests/Models/files.pml).
package final class ItemEntry: Sendable {
  let site: ItemSite
  private let directory: SharedDescriptor
  /// The lease, with the other accesses of this process that share it; nil after the end, so that it
  /// is closed then.
  private let share: Mutex<LeaseShare?>
  private var held: Int32? { share.withLock(\.self)?.lease.held.descriptor.rawValue }
  private let state: Mutex<EntryName>
  private let handedOn = Atomic(false)
  /// Whether the item may be changed again soon.
  private let maySiteStay = Atomic(false)

  /// Whether a program that has inherited the lease works on the item: the access stands as long as
  /// the program runs, even if this process does not.
  package var isHandedOn: Bool { handedOn.load(ordering: .acquiring) }

  var name: EntryName { state.withLock { $0 } }
  /// The directory of the private copy.
  var descriptor: Int32 { directory.descriptor.rawValue }
  /// A program that works on the item itself inherits it (`ChildProcess`): the lease stays locked as
  /// long as the program and its children run, even if this process is killed or stopped. They are
  /// killed before a takeover, because they are stopped or the term is over.
  package var inheritance: (descriptor: Int32, file: FileStatus)? {
    get throws(Errno) {
      guard let held = share.withLock(\.self)?.lease.held else { return nil }
      return (held.descriptor.rawValue, try held.status())
    }
  }

  private init(
    _ name: EntryName, at site: ItemSite, _ share: LeaseShare, _ directory: SharedDescriptor
  ) {
    self.site = site
    self.directory = directory
    self.share = Mutex(share)
    state = Mutex(name)
  }

  /// Makes an entry in a lease that this process has locked.
  ///
  /// - Returns: nil if the lease was taken over, or ended, meanwhile.
  static func make(
    _ name: EntryName, at site: ItemSite, in share: LeaseShare
  ) throws(Errno) -> ItemEntry? {
    let held = share.lease.held.descriptor.rawValue
    var directory = site.takeSpare()
    // A later holder of the lease has removed it.
    if directory != nil,
      try ifPresent(rename(LeaseSite.spare, at: held, to: name.text, at: held)) == nil
    {
      directory = nil
    }
    if directory == nil { directory = try ifPresent(site.makeDirectory(name.text, at: held)) }
    guard let directory else { return nil }
    share.add(name)
    return ItemEntry(name, at: site, share, directory)
  }

  /// The path of the private copy, for programs.
  package var copyPath: String {
    NameWriter.text(joining: [
      site.path, "/", LeaseLayout.passing.held, "/", name.text, "/", site.itemName,
    ])
  }

  /// The private copy, seen from the lease.
  private var copy: String { name.text + "/" + site.itemName }

  /// Whether files made in it inherit access control lists.
  func hasDefaultAccessList() throws(Errno) -> Bool {
    try FileMetadata.areInherited(in: directory.descriptor)
  }

  // MARK: Its name

  /// Declares that this process is about to publish its copy.
  ///
  /// - Parameter coversContents: whether the accesses in the directory are kept out from now on.
  /// - Throws: `overtaken`.
  func beginPublishing(coversContents: Bool = false) throws {
    try change {
      $0.changed(kind: .publishing, coversContents: $0.coversContents || coversContents)
    }
  }

  /// Declares the process that has inherited the lease, so that others can name it and see that it
  /// is stopped: the kernel unlocks the lease when both this process and that one have ended.
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
    try WormholeSystem.makeDirectory(EntryName.entry(ofGrace: grace), at: descriptor)
  }

  /// Gives the entry another name: see `ItemAccess.renew`.
  func renew() throws { try change { $0.changed(declaration: $0.declaration.renewed()) } }

  private func change(_ edit: (EntryName) -> EntryName) throws {
    let old = name
    let new = edit(old)
    guard new != old else { return }
    guard let held, try ifPresent(rename(old.text, at: held, to: new.text, at: held)) != nil else {
      throw overtaken()
    }
    state.withLock { $0 = new }
    share.withLock(\.self)?.rename(old, to: new)
  }

  // MARK: Takeovers

  /// Whether the access was not taken over. It may be the next moment: only publishing decides.
  package func isStanding() throws(Errno) -> Bool {
    guard let held else { return false }
    return try exists(name.text, at: held)
  }

  /// Whether it was taken over, as far as that can be by now.
  ///
  /// - Complexity: no system call within the grace.
  func isLost() throws(Errno) -> Bool {
    let declaration = name.declaration
    let age = declaration.age ?? LeaseRequest.grace
    guard age >= min(LeaseRequest.grace, declaration.term) else { return false }
    return try !isStanding()
  }

  package func overtaken() -> WormholeError {
    let name = name
    let taker = taker ?? announced
    return .overtaken(
      "change the item", path: site.location.text,
      by: taker.map { LeaseHolder(identity: $0.identity, held: nil) }, ago: taker?.age,
      because: reason(of: name, taker))
  }

  /// The process that took it over: the kernel knows the directory's present name, even that of a
  /// removed one ("… (deleted)", proc_pid_fd(5)).
  private var taker: LeaseDeclaration? {
    // Without an answer, no process is named.
    guard let path = try? linkTarget("/proc/self/fd/\(descriptor)") else { return nil }
    let name = path.split(separator: "/").last?.split(separator: " ").first ?? ""
    return ItemHome.taker(ofTrash: FileName(name))
  }

  /// The process that kills the heirs of the lease, to take it over.
  var announced: LeaseDeclaration? {
    // Without an answer, no process is named.
    (try? directory.descriptor.announcedTaker()) ?? nil
  }

  private func reason(of name: EntryName, _ taker: LeaseDeclaration?) -> String {
    let declaration = name.declaration
    if let taker, declaration.isPastItsTerm(at: taker) {
      return "its term of \(declaration.term.tenthsOfSeconds) s was over"
    }
    let isSeen = taker?.identity.isVisible ?? true
    return "\(isHandedOn ? "the command" : "this process") was stopped"
      + (isSeen ? "" : ", or could not be seen from there")
  }

  // MARK: Publishing

  /// Runs the last look at the item and its publication as one step for the other accesses of this
  /// process that share the lease.
  ///
  /// - Throws: `overtaken` after the end.
  func publishing<Result: Sendable>(_ body: (Lease) throws -> Result) throws -> Result {
    guard let share = share.withLock(\.self) else { throw overtaken() }
    return try share.publishing { try body(share.lease) }
  }

  /// Moves the copy to the item's place, in one step.
  func publishCopy(_ mode: RenameMode, under lease: Lease) throws {
    do {
      try lease.moveOut(copy, to: site.item, mode)
    } catch let error as WormholeError where error.code == .leaseLost {
      guard LeaseFault.publishingBeside.isActive else { throw overtaken() }
      // From where it was put aside.
      try rename(site.itemName, at: descriptor, to: "../../" + site.itemName, at: descriptor)
    }
  }

  /// Removes the item, by a move into this entry.
  func removeItem(under lease: Lease) throws {
    let held = lease.held.descriptor.rawValue
    let item = lease.site.layout.fromHeld(site.item)
    guard try ifPresent(rename(item, at: held, to: copy, at: held)) != nil else {
      // There is nothing to remove, or nothing to move it to.
      if try isStanding() { return }
      throw overtaken()
    }
    try lease.discard(copy)
  }

  /// Flushes to the disk that the copy has left.
  func synchronize() throws(Errno) { try directory.descriptor.synchronize() }

  /// The item may be changed again soon, by this process.
  func letSiteStay() { maySiteStay.store(true, ordering: .relaxed) }

  // MARK: The end

  /// Ends the access: gives up the entry with everything in it, and removes what no other process
  /// uses. Errors are only reported: the access has ended, and the next process removes what is left.
  ///
  /// - Complexity: Blocks; if the private copy was not published, for as long as its removal takes.
  package func end() {
    var share = self.share.withLock { $0.take() }
    guard let isAlone = share?.remove(name) else { return }
    var isKept = false
    Diagnostics.reporting {
      guard let lease = share?.lease else { return }
      isKept = try isAlone && keepSite(lease)
      if !isKept { try leave(lease) }
    }
    // Unlocks it if no other access of this process shares it.
    share = nil
    if !isKept { site.leave() } else if !KeptSites.shared.keep(site) { site.removeKept() }
  }

  private func keepSite(_ lease: Lease) throws -> Bool {
    guard maySiteStay.load(ordering: .relaxed), !isHandedOn else { return false }
    return try site.keep(name.text, directory, under: lease)
  }

  private func leave(_ lease: Lease) throws(Errno) {
    let held = lease.held.descriptor.rawValue
    do throws(Errno) {
      try removeDirectory(name.text, at: held)
    } catch {
      // From now on it is not in use, wherever it is.
      try directory.descriptor.unlock()
      switch error {
      // It was put aside.
      case .noSuchFile: break
      // In one step, however large it is: from now on it excludes no other process.
      case .directoryNotEmpty, .alreadyExists:
        _ = try ifPresent(site.setAside(FileName(name.text), at: held))
      default: throw error
      }
    }
    // An empty lease has no holder that has acted, so anybody may remove it.
    _ = try removeIfEmpty(LeaseLayout.passing.held, at: site.descriptor)
  }

  deinit { end() }
}

/// The name of a holder's directory in the lease of an item: `<kind>-<declaration>`. It describes the
/// holder, so the description costs no write.
package struct EntryName: Hashable, Sendable {
  /// The holder's use of the item.
  package enum Kind: Character, Sendable {
    /// Changes a private copy: readers that begin meanwhile wait for its end.
    case copying = "w"
    /// Is about to publish its copy: new readers wait.
    case publishing = "p"
    /// Changes the item where it is: readers wait.
    case inPlace = "i"
  }

  package let kind: Kind
  /// Whether accesses in the directory are kept out.
  let coversContents: Bool
  /// The holder, the beginning of its access and its longest term.
  let declaration: LeaseDeclaration
  package let text: String

  package init(kind: Kind, coversContents: Bool, declaration: LeaseDeclaration) {
    self.kind = kind
    self.coversContents = coversContents
    self.declaration = declaration
    text = declaration.name(marked: String(kind.rawValue) + (coversContents ? "c" : ""))
  }

  fileprivate func changed(
    kind: Kind? = nil, coversContents: Bool? = nil, declaration: LeaseDeclaration? = nil
  ) -> EntryName {
    EntryName(
      kind: kind ?? self.kind, coversContents: coversContents ?? self.coversContents,
      declaration: declaration ?? self.declaration)
  }

  /// Reads an entry's name; nil if it does not name a holder.
  package init?(_ entry: FileName) {
    guard let (mark, declaration) = LeaseDeclaration.marked(entry),
      let kind = mark.first.flatMap({ Kind(rawValue: $0) }), ["", "c"].contains(mark.dropFirst())
    else { return nil }
    self.init(kind: kind, coversContents: mark.count == 2, declaration: declaration)
  }

  /// The holder, for waiting processes' error sentences.
  var holder: LeaseHolder { LeaseHolder(identity: declaration.identity, held: declaration.age) }

  /// Whether its holder has had it longer than declared.
  var isPastItsTerm: Bool { (declaration.age ?? .zero) >= declaration.term }

  // MARK: The wish of its holder

  private static let gracePrefix = "grace-"

  fileprivate static func entry(ofGrace grace: Duration) -> String {
    gracePrefix + String(Int64(grace / .milliseconds(1)), radix: 16)
  }

  static func grace(_ entry: FileName) -> Duration? {
    guard entry.hasPrefix(gracePrefix) else { return nil }
    return Int64(entry.text.dropFirst(gracePrefix.count), radix: 16).map { .milliseconds($0) }
  }
}
