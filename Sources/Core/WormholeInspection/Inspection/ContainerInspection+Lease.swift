import Wormhole
import WormholeSystem

extension ContainerInspection {
  mutating func lookAtLease(_ found: Found) {
    let (path, owner) = (found.path, found.owner)
    switch found.part.role {
    case .held: lookAtHeld(path, of: owner)
    case .broken: add(.brokenLease, path, of: owner)
    case .transaction:
      attempt("look at a transaction", at: path) { inspection in
        let before = inspection.status(path)
        guard let nonce = try Transaction.nonce(notedAt: owner.path, in: inspection.container.root)
        else {
          // Otherwise a transaction has ended meanwhile, and perhaps another one has begun.
          if LeaseFault.reportingEndedTransactions.isActive
            || before != nil && inspection.status(path) == before
          {
            inspection.addForeign(path)
          }
          return
        }
        if inspection.isAbandoned(transaction: nonce) {
          inspection.add(.abandonedChange, path, of: owner)
        }
      }
    case .unfinished:
      guard let status = status(path), status.kind == .regular else { return addForeign(path) }
      if !isBeingWritten(status, path) { add(.abandonedContent, path, of: owner) }
    default: return
    }
  }

  /// Returns whether the writer of a transaction has died, or has left it to others.
  func isAbandoned(transaction nonce: String) -> Bool {
    for file in Transaction.stateFiles(of: nonce) {
      if let status = status(file), isBeingWritten(status, file) { return false }
    }
    // A writer makes the directory just before it has locked the file, and removes it just after the
    // file. Meanwhile it has the leases of its values.
    let isRunning = [NameKind.value, .ownValue].contains { kind in
      // An error is reported where the names are listed.
      let entries = (try? ContainerRoot.entries(kind.path, at: directory)) ?? nil
      return (entries ?? []).contains { isHeld("\(kind.path)/\($0.name.text)") }
    }
    return !isRunning || isStale(Transaction(nonce: nonce).path)
  }

  /// Returns whether a process has the lease of a name's directory.
  func isHeld(_ path: String) -> Bool {
    status(path + "/" + LeaseSite.held).map { locks?.holders(of: $0).isEmpty == false } ?? false
  }

  private mutating func lookAtHeld(_ path: String, of owner: Owner) {
    // It was taken over since it was listed.
    guard let held = status(path) else { return }
    guard held.kind == .directory else { return addForeign(path, isInTheWay: true) }
    var isDeclared = false
    for entry in list(path) where entry.name.text != LeaseSite.cleanMark {
      let place = path + "/" + entry.name.text
      if entry.isDirectory == true {
        addForeign(place, isInTheWay: true)
      } else if let declaration = LeaseDeclaration(entry.name), mayLive(declaration, path) {
        isDeclared = true
        let holder = LeaseHolder(identity: declaration.identity, held: declaration.age)
        addLease(of: owner, holder, declaration)
      } else {
        add(.abandonedChange, place, of: owner)
      }
    }
    if !isDeclared, let processID = locks?.holders(of: held).first {
      addLease(of: owner, LeaseHolder(visible: processID, held: nil))
    }
  }

  private mutating func addLease(
    of owner: Owner, _ holder: LeaseHolder, _ declaration: LeaseDeclaration? = nil
  ) {
    var overdue: ContainerReport.HeldLease.Overdue?
    if let declaration, let age = declaration.age, age >= declaration.term {
      overdue = .termPassed
    }
    if holder.state == .stopped { overdue = .stopped }
    let parts = container.root.parts(of: owner.kind.primitive)
    let file = parts.first { $0.role == .content }?.name.map { "/" + $0 }
    report.leases.append(
      .init(
        identifier: owner.identifier, title: title(of: owner), isOwn: owner.kind.isOwn,
        path: absolute(owner.path) + (file ?? ""), holder: holder,
        term: declaration.map(\.term).flatMap { $0 < LeaseDeclaration.whileRunning ? $0 : nil },
        overdue: overdue))
  }

  private func mayLive(_ declaration: LeaseDeclaration, _ held: String) -> Bool {
    declaration.identity.isVisible ? !declaration.identity.hasEnded : isLocked(held)
  }

  // A holder in another namespace cannot be looked up; only its lock shows that it lives. Holding
  // the lock for a moment does no harm: a process that finds it busy tries again within 20 µs.
  private func isLocked(_ path: String) -> Bool {
    // A lease that cannot be opened is gone: taken over, or ended and swept.
    let isFree = try? FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory])
      .tryLock(.exclusive)
    return isFree == false
  }
}
