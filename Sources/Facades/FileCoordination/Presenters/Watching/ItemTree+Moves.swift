import AppGroup
import FileClaims
import SystemCalls

/// Telling what was moved from what is new and what is gone.
extension ItemTree {
  mutating func vanish(
    _ entry: Entry, _ place: Place, at path: ItemPath, _ found: inout Found
  ) {
    set(nil, at: place, insteadOf: entry)
    let identity = FileIdentity(entry.known.status)
    guard vanished[identity] != nil else {
      vanished[identity] = Vanished(path: path, entry: entry)
      return
    }
    // Another name of a file that is gone already, or the number of one given to the next.
    if let node = entry.node { drop(node) }
    found.notices.append(.subitemChanged(path))
  }

  /// Looks at the place where a file was that has appeared elsewhere.
  private mutating func lookForOld(_ new: Appeared, _ found: inout Found) {
    guard let place = places[FileIdentity(new.status)], let directory = open(place.node),
      let entry = nodes[place.node]?.entries[place.name],
      statusIfVisible(place.name.text, at: directory.descriptor.rawValue) == nil
    else { return }
    let path = path(of: place.node, from: found.root).appending(place.name)
    vanish(entry, place, at: path, &found)
  }

  mutating func place(_ new: Appeared, _ found: inout Found) {
    let place = path(of: new.node, from: found.root).appending(new.name)
    let identity = FileIdentity(new.status)
    var entry = Entry(known: EntryStatus(new.status))
    if vanished[identity] == nil { lookForOld(new, &found) }
    if let old = vanished[identity], isMoved(old, to: new, at: place) {
      vanished[identity] = nil
      found.notices.append(.subitemMoved(old.path, place))
      entry.node = old.entry.node
      if let node = entry.node {
        nodes[node]?.parent = new.node
        nodes[node]?.name = new.name
      }
    } else {
      found.notices.append(.subitemAppeared(place))
      if new.status.kind == .directory {
        let node = makeNode(in: new.node, new.name, new.status)
        entry.node = node
        found.waiting.append((node, .everything))
      }
    }
    set(entry, at: Place(node: new.node, name: new.name), insteadOf: nil)
  }

  // Of a directory that was removed nothing is left but its number, which a new one may have.
  private func isMoved(_ old: Vanished, to new: Appeared, at place: ItemPath) -> Bool {
    guard old.entry.known.isMoved(to: new.status), old.path != place else { return false }
    guard let node = old.entry.node else { return true }
    return nodes[node]?.watch != nil
  }

  mutating func settle(isLater: Bool, isLast: Bool, _ found: inout Found) {
    for (identity, gone) in vanished {
      guard isLast || (isLater && gone.isOld) else {
        vanished[identity]?.isOld = true
        continue
      }
      vanished[identity] = nil
      if let node = gone.entry.node { drop(node) }
      found.notices.append(.subitemChanged(gone.path))
    }
  }
}
