import Wormhole
import WormholePropertyLists
import WormholeSystem

enum ValueMark: Equatable {
  case version(Version)
  case problem(String)
}

// Values, notifications, presences, logs, mailboxes and leases.
extension DirectoryLooks {
  mutating func lookAtValue(_ place: Place) {
    let value = Value(container: container, identifier: place.identifier, kind: place.kind)
    let event = { (change: ContainerEvent.Change) in
      ContainerEvent(
        place.kind.primitive == .notification ? .notification : .value, change,
        of: place.identifier, isOwn: place.kind.isOwn)
    }
    do {
      let mark = try value.version().map { ValueMark.version($0) }
      guard mark != names[place.directory]?.content else { return }
      names[place.directory]?.content = mark
      guard mark != nil else { return report(event(.removed)) }
      guard !isBeginning || place.kind.isOwn else { return }
      let snapshot = try value.snapshot()
      guard let version = snapshot.version else {
        names[place.directory]?.content = nil
        return report(event(.removed))
      }
      names[place.directory]?.content = .version(version)
      var changed = event(isBeginning ? .known : .changed)
      changed.take(snapshot.publisher)
      changed.bytes = try snapshot.bytes()?.count
      do {
        changed.value = try snapshot.propertyList()
      } catch let error as AppGroupError {
        changed.problem = error.reason
      }
      report(changed)
    } catch let error as AppGroupError where error.code == .containerMissing {
      guard names[place.directory]?.content != nil else { return }
      names[place.directory]?.content = nil
      report(event(.removed))
    } catch {
      let problem = (error as? AppGroupError)?.reason ?? "\(error)"
      guard names[place.directory]?.content != .problem(problem) else { return }
      names[place.directory]?.content = .problem(problem)
      var changed = event(.changed)
      changed.problem = problem
      report(changed)
    }
  }

  mutating func lookAtNotification(_ place: Place) {
    if parts.part(at: place.rest, of: .notification)?.role != .bell { lookAtValue(place) }
    let sound = Set(list(place.directory).map { FileName($0) }.filter(Bell.isName))
    let old = names[place.directory]?.bells ?? []
    names[place.directory]?.bells = sound
    // A bell that is gone was swept.
    guard !sound.subtracting(old).isEmpty else { return }
    report(ContainerEvent(.notification, .posted, of: place.identifier))
  }

  /// Lists the present processes. A look asks for the lock of each registration for a moment, like
  /// any look at a presence.
  mutating func lookAtPresence(_ place: Place, _ events: WatchEvents) {
    let presence = PresenceDirectory(
      container: container, name: place.identifier, kind: place.kind)
    let look: PresenceLook?
    do {
      look = try presence.look(movesAside: false)
    } catch {
      // Too many files, or none that may be read: no arrival or departure is known.
      return
    }
    let (came, went) = members.update(
      place.directory, look?.live ?? [], countsProcesses: place.kind.primitive == .consumer)
    let event = { (member: PresenceMember, change: ContainerEvent.Change) in
      ContainerEvent.member(member, change, of: place.identifier, kind: place.kind)
    }
    for member in came { report(event(member, isBeginning ? .known : .entered)) }
    let left = went.isEmpty ? nil : lastToLeave(place)
    for member in went {
      let isLeft = look?.dead.contains { $0.id == member.id } ?? false
      let hasDied = isLeft || left.map { $0 == (member.id, false) } ?? false
      report(event(member, hasDied ? .died : .left))
    }
    // The kernel reports that a file was closed just before it frees its lock.
    guard events.contains(.closedAfterWriting), let name = place.rest.first else { return }
    let directory = place.directory
    let checks =
      names[directory]?.followUp
      ?? FollowUpChecks { [weak tree] in tree?.lookAgain(at: FileName(name), of: directory) }
    names[directory]?.followUp = checks
    checks.begin()
  }

  /// Returns the last recorded registration, and whether it left by itself.
  private func lastToLeave(_ place: Place) -> (id: String, hasLeft: Bool)? {
    let path = place.directory + "/" + PresenceDirectory.last
    let record = read(path, maximumBytes: 65_536).flatMap { PropertyListValue(found: $0) }
    return record?["id"]?.stringValue.map { ($0, record?["ended"]?.dateValue != nil) }
  }

  mutating func lookAtMessage(_ place: Place) {
    guard let number = LogDirectory.number(FileName(place.file)),
      number > names[place.directory]?.lastMessage ?? 0, status(place.path) != nil
    else { return }
    names[place.directory]?.lastMessage = number
    guard !isBeginning else { return }
    var event = ContainerEvent(.log, .appended, of: place.identifier)
    event.number = number
    if let content = read(place.path, maximumBytes: Value.maximumFileBytes) {
      event.take(content: content)
    }
    report(event)
  }

  /// A message into a mailbox is often delivered before another process can read it.
  mutating func lookAtMailbox(_ address: String, at path: String, _ events: WatchEvents) {
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    guard let entry = EntryFile(name) else { return }
    let isNew = messages[address]?.contains(name) != true
    let isThere = status(path) != nil
    if isThere { messages[address, default: []].insert(name) }
    if !isThere { messages[address]?.remove(name) }
    if messages[address]?.isEmpty == true { messages[address] = nil }
    guard isNew, isThere || !events.isDisjoint(with: [.movedTo, .created]) else { return }
    report(
      .posted(
        into: address, read(path, maximumBytes: Value.maximumFileBytes), bytes: entry.bytes))
  }

  mutating func lookAtTakeover(_ place: Place) {
    guard let status = status(place.path) else { return }
    let stamp = status.changedMoment.mark
    guard names[place.directory]?.takeover != stamp else { return }
    names[place.directory]?.takeover = stamp
    guard !isBeginning else { return }
    var event = ContainerEvent(
      .lease, .takenOver, of: place.identifier, isOwn: place.kind.isOwn)
    guard let bytes = read(place.path, maximumBytes: 65_536) else { return report(event) }
    do throws(PropertyListError) {
      let note = try PropertyListValue(bytes: bytes)
      event.processID = note["breakerProcess"]?.int64Value.flatMap { Int32(exactly: $0) }
      event.program = event.processID.flatMap { ProcessStatus.of($0)?.program }
      let victim = note["victim"]?.stringValue.flatMap { LeaseDeclaration(FileName($0)) }
      event.detail = victim.map { "from process \($0.identity.processID)" }
    } catch {
      event.problem = "\(error)"
    }
    report(event)
  }
}
