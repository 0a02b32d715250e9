import Wormhole
import WormholeSystem

/// The inspection of the directory of one presence.
extension ContainerInspection {
  mutating func lookAtPresence(_ owner: Owner) {
    let presence = DirectoryPresence(
      container: container, name: owner.identifier, kind: owner.kind)
    attempt("look who is present", at: owner.path) { inspection in
      guard let look = try presence.place.look(movesAside: false) else { return }
      // A consumer's presence is reported with its queue.
      if owner.kind.primitive == .presence {
        let live = ContainerReport.NamedPresence(
          name: owner.identifier, path: presence.path, members: look.live)
        inspection.report.change(owner.kind) { $0.presences.append(live) }
      }
      for member in look.dead {
        inspection.add(
          .abandonedPresence, owner.path + "/" + PresenceDirectory.memberName(member.id), of: owner)
      }
    }
    lookAtParts(of: owner) { inspection, found in
      if found.part.role == .registration { inspection.lookAtRegistration(found) }
      return found.part.role == .registration
    }
  }

  private mutating func lookAtRegistration(_ found: Found) {
    guard let status = status(found.path), status.kind == .regular else {
      return addForeign(found.path)
    }
    checkOwnerAndMode(found.path)
    attempt("look at a registration", at: found.path) { inspection in
      let directory = try FileDescriptor.openBeneath(
        found.owner.path, at: inspection.directory, [.readOnly, .directory])
      let examiner = try PresenceDirectory.Examiner(directory, inspection.container.root)
      if try examiner.isAbandoned(found.name, removing: false) {
        inspection.add(.abandonedPresence, found.path, of: found.owner)
      }
    }
  }
}
