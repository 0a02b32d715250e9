import WormholeSystem

/// Removal of a queue's parts, when it is empty and has no consumer.
///
/// The process that removes it is its consumer for that time, so no other process is. Each part is
/// removed only if it is empty, by a path through that consumer's own directory: a consumer that
/// was replaced while it was stopped no longer removes anything (ENOENT). A sender that arrives at
/// the same moment finds a part missing, creates all of them again, and stores its entry there; the
/// directory is then not empty, and stays.
extension Queue {
  /// - Returns: whether all parts are gone except for the lease.
  package func removeParts() throws -> Bool {
    let registration = try role.enterExclusively(overtaking: .nobody, until: .now)
    defer { registration.close() }
    // Workers are not exclusive. One that begins now waits for this process.
    guard try !role.members().contains(where: { !$0.isExclusive }) else { return false }
    let consumer = try DirectoryConsumer(
      DeliveryTerms(OpenQueue(self)), named: "consumer-" + Nonce.next(), role: registration)
    // As at the beginning of consuming.
    try registration.confirm()
    try sweep()
    guard let place = try open(), try place.isEmpty() else {
      return false
    }
    do throws(Errno) {
      for part in directory.root.parts[.queue] {
        // The consumer's own directory is in `taken`.
        guard let name = part.name, part.parts != nil, part.role != .lease,
          name != QueueDirectory.taken
        else { continue }
        let path = consumer.takenPath + "/../../" + name
        // It may never have been created.
        guard try ifPresent(place.removeEmpty(path)) == nil else { continue }
        guard try place.exists(consumer.takenPath) else { return false }
      }
      try place.removeEmpty(consumer.takenPath)
      try place.removeEmpty(QueueDirectory.taken)
      return true
    } catch {
      guard [.noSuchFile, .directoryNotEmpty, .alreadyExists].contains(error) else { throw error }
      return false
    }
  }
}
