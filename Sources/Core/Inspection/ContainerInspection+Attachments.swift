import Queues
import SystemCalls

/// The inspection of the files that belong to the entries of a queue.
extension ContainerInspection {
  mutating func lookAtAttachments(_ owner: Owner, _ path: String) {
    for entry in list(path)?.entries ?? [] {
      let place = path + "/" + entry.name.text
      guard AttachmentPlace.isID(entry.name.text), let status = status(place),
        status.kind == .directory
      else {
        addForeign(place)
        continue
      }
      // A complete file belongs to its sender, which may come back, so it is not a leftover.
      let isWhole = self.status(place + "/" + AttachmentPlace.content) != nil
      if !isWhole, !isBeingWritten(status, place) { add(.abandonedEntry, place, owner) }
    }
  }
}
