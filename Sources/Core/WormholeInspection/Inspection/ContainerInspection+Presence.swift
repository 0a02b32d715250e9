import Wormhole
import WormholeSystem

/// The inspection of the directory of one presence.
extension ContainerInspection {
  mutating func lookAtPresence(_ name: String, _ kind: NameKind, _ path: String) {
    let presence = DirectoryPresence(container: container, name: name, kind: kind)
    let owner = (kind: kind, identifier: name)
    attempt("look who is present", path) { inspection in
      guard let look = try presence.place.look(movesAside: false) else { return }
      // A consumer's presence is reported with its queue.
      if kind.primitive == .presence {
        let live = ContainerReport.NamedPresence(
          name: name, path: presence.path, members: look.live)
        inspection.change(kind) { $0.presences.append(live) }
      }
      for member in look.dead {
        inspection.add(
          .abandonedPresence, path + "/" + PresenceDirectory.memberName(member.id), owner)
      }
    }
    for entry in list(path) {
      switch entry.name.text {
      case PresenceDirectory.last, presence.role.fileName, NamedDirectory.identifierFile: continue
      case LeaseSite.lease: lookAtLease(owner, of: presence.role.path, in: path)
      default: lookAtRegistration(entry, path, owner)
      }
    }
  }

  private mutating func lookAtRegistration(
    _ entry: FileDescriptor.Entry, _ path: String, _ owner: Owner
  ) {
    let place = path + "/" + entry.name.text
    let prefixes = [PresenceDirectory.memberPrefix, PresenceDirectory.enteringPrefix]
    guard prefixes.contains(where: { PresenceDirectory.id(in: entry.name, after: $0) != nil }),
      let status = status(place), status.kind == .regular
    else { return addForeign(place) }
    checkOwnerAndMode(place)
    attempt("look at a registration", place) { inspection in
      let directory = try FileDescriptor.openBeneath(
        path, at: inspection.directory, [.readOnly, .directory])
      let examiner = try PresenceDirectory.Examiner(directory, inspection.container.root)
      if try examiner.isAbandoned(entry.name, removing: false) {
        inspection.add(.abandonedPresence, place, owner)
      }
    }
  }
}
