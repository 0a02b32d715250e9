import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The inspection of the directory of one value or notification.
extension ContainerInspection {
  mutating func lookAtName(_ identifier: String, of kind: NameKind, at path: String) {
    guard status(path)?.kind == .directory else {
      return addForeign(path, isInTheWay: true)
    }
    checkOwnerAndMode(path)
    switch kind.primitive {
    case .presence, .consumer: return lookAtPresence(identifier, kind, path)
    case .queue: return lookAtQueue(identifier, kind, path)
    case .log: return lookAtLog(identifier, path)
    case .value, .notification: break
    }
    let value = Value(container: container, identifier: identifier, kind: kind)
    lookAtContent(value, kind, path + "/" + value.fileName)
    for entry in list(path) {
      let name = entry.name.text
      switch name {
      case value.fileName, NamedDirectory.identifierFile: continue
      case LeaseSite.lease: lookAtLease((kind, identifier), of: value.path, in: path)
      case _ where kind.primitive == .value && name.hasPrefix(NamedDirectory.startPrefix): continue
      case _ where kind == .notification && name.hasPrefix("bell-"): continue
      default: addForeign(path + "/" + name)
      }
    }
  }

  private mutating func lookAtContent(_ value: Value, _ kind: NameKind, _ path: String) {
    var content = ContainerReport.NamedContent(identifier: value.identifier, path: value.path)
    if kind == .notification { content.state = 0 }
    defer {
      change(kind) { names in
        if kind == .notification {
          names.notifications.append(content)
        } else {
          names.values.append(content)
        }
      }
    }
    guard let status = status(path) else { return }
    checkOwnerAndMode(path)
    content.bytes = status.size
    content.modified = status.modified
    // Anything but a file of acceptable size is refused without being read.
    let isRead = status.kind == .regular && status.size <= Int64(Value.maximumFileBytes)
    guard mayRead(isRead ? status.size : 0) else {
      content.condition = .notRead
      return
    }
    do {
      let snapshot = try value.snapshot()
      if snapshot.isExpired {
        content.bytes = nil
        content.modified = nil
        return
      }
      let read = try snapshot.propertyList()
      content.expiration = snapshot.expiration
      content.publisher = snapshot.publisher
      content.kept = snapshot.standsInFrom
      content.condition = .readable
      if kind == .ownValue, let read, let reason = problem(value.identifier, read) {
        content.condition = .unreadable(
          AppGroupError(.damaged, "read the value", path: value.path, reason: reason))
      }
      if kind == .notification { content.state = read?.uint64Value }
    } catch let error as AppGroupError {
      content.condition = .unreadable(error)
      // What has no kept version that can be read is reported as it is.
      content.kept = try? value.keptInstead()
    } catch {
      content.condition = .unreadable(
        AppGroupError(.inputOutput, "read the value", path: value.path, reason: "\(error)"))
    }
  }

  /// - Parameters:
  ///   - file: the absolute path of what only its holder may change.
  ///   - parent: the directory that contains the lease.
  mutating func lookAtLease(_ owner: Owner, of file: String, in parent: String) {
    let path = parent + "/" + LeaseSite.lease
    for entry in list(path) {
      let place = path + "/" + entry.name.text
      switch entry.name.text {
      case "held": lookAtHeld(owner, file, place)
      case "taken.plist": continue
      case LeaseSite.transaction:
        guard let nonce = Transaction.nonce(notedAt: parent, in: container.root) else {
          addForeign(place)
          continue
        }
        if isAbandoned(transaction: nonce) { add(.abandonedChange, place, owner) }
      case let name where name.hasPrefix(KeptVersion.prefix): continue
      case let name where name.hasPrefix(LeaseSite.brokenPrefix):
        add(.brokenLease, place, owner)
      case let name
      where name.hasPrefix(LeaseSite.preparedPrefix) || name.hasPrefix(LeaseSite.waitingPrefix):
        guard let status = status(place), status.kind == .regular else {
          addForeign(place)
          continue
        }
        // Its writer keeps it locked as long as it lives.
        if locks?.holders(of: status).isEmpty ?? isStale(place) {
          add(.abandonedContent, place, owner)
        }
      default: addForeign(place)
      }
    }
  }

  /// Returns whether the writer of a transaction has died, or has left it to others.
  func isAbandoned(transaction nonce: String) -> Bool {
    let files = Transaction.stateFiles(of: nonce)
    let file = files.first { status($0) != nil }
    guard let file, let status = status(file) else { return true }
    return locks?.holders(of: status).isEmpty ?? isStale(file)
  }

  private mutating func lookAtHeld(_ owner: Owner, _ file: String, _ path: String) {
    guard let held = status(path), held.kind == .directory else {
      return addForeign(path, isInTheWay: true)
    }
    var isDeclared = false
    for entry in list(path) where entry.name.text != LeaseSite.cleanMark {
      let place = path + "/" + entry.name.text
      if entry.isDirectory == true {
        addForeign(place, isInTheWay: true)
      } else if let declaration = LeaseDeclaration(entry.name), mayLive(declaration, path) {
        isDeclared = true
        report.leases.append(lease(owner, file, declaration))
      } else {
        add(.abandonedChange, place, owner)
      }
    }
    if !isDeclared, let processID = locks?.holders(of: held).first {
      let holder = LeaseHolder(visible: processID, held: nil)
      report.leases.append(
        .init(
          identifier: owner.identifier, kind: owner.kind, path: file, holder: holder, term: nil,
          overdue: holder.state == .stopped ? .stopped : nil))
    }
  }

  private func lease(
    _ owner: Owner, _ file: String, _ declaration: LeaseDeclaration
  ) -> ContainerReport.HeldLease {
    let holder = LeaseHolder(identity: declaration.identity, held: declaration.age)
    var overdue: ContainerReport.HeldLease.Overdue?
    if let age = declaration.age, age >= declaration.term { overdue = .termPassed }
    if holder.state == .stopped { overdue = .stopped }
    return .init(
      identifier: owner.identifier, kind: owner.kind, path: file, holder: holder,
      term: declaration.term < LeaseDeclaration.whileRunning ? declaration.term : nil,
      overdue: overdue)
  }

  private func mayLive(_ declaration: LeaseDeclaration, _ held: String) -> Bool {
    guard declaration.identity.isVisible else { return isLocked(held) }
    guard let status = declaration.identity.status else { return false }
    return !status.isDead
  }

  // A holder in another namespace cannot be looked up; only its lock shows that it lives. Holding
  // the lock here for a moment does no harm, because a process that finds it busy tries again
  // within 20 µs.
  private func isLocked(_ path: String) -> Bool {
    // One that cannot be opened is gone: taken over, or ended and swept.
    let isFree = try? FileDescriptor.openBeneath(path, at: directory, [.readOnly, .directory])
      .tryLock(.exclusive)
    return isFree == false
  }
}
