import SystemCalls

/// The files that came with the entries of a queue.
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
      // What is whole is its sender's, who may come back, and is no leftover.
      let isWhole = self.status(place + "/" + AttachmentPlace.content) != nil
      if !isWhole, !isBeingWritten(status, place) { add(.abandonedEntry, place, owner) }
    }
  }
}
