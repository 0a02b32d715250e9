package import WormholePropertyLists
package import WormholeSystem

/// The files that accompany the entries of a queue: where they are, and the one step that creates
/// or moves each of them.
///
/// ```
/// attachments/<id>/                          an attachment; its sender has the directory locked
/// attachments/<id>/copying-<total>-<sender>  content being copied, and its final size
/// attachments/<id>/content                   complete: renamed from copying-…
/// taken/<consumer>/attachment-<id>/          the consumer's: renamed from attachments/<id>
/// taken/<consumer>/making-<id>/              of a queue that the sender itself consumes: an
///                                            attachment for another queue, before it is renamed there
/// ```
///
/// **Sending.** Create the directory and lock it; give it its content through its descriptor; store
/// the entry, whose payload names it (`payloadKey`); only then close the directory.
///
/// **Receiving.** Before the consumer delivers an entry it renames the attachment into its own
/// directory, and every step it takes with the attachment is a call on a path through that
/// directory's name. So a consumer that was replaced while it was stopped finds nothing there
/// (ENOENT): it neither moves nor deletes files that its successor handles. When the entry ends
/// the attachment is removed, unless its receiver has renamed its content away before.
///
/// **Sent again.** A sender that forwards an entry of a queue it consumes creates the attachment in
/// its directory in `taken/` of that queue, and renames it from there: if it has been replaced, it
/// creates none. Its successor finds its attachments, and removes them. If the stopped sender then
/// renames content into the removed directory, through its descriptor, that fails (ENOENT), and an
/// entry that it still stores names a missing attachment.
///
/// **What a crash leaves**: an unlocked directory without `content`, swept by the next consumer; an
/// attachment in `taken/` that no entry there names, swept by the next consumer; and one with
/// `content` in `attachments/` that no entry names, removed by its sender, which begins again.
package enum AttachmentLayout {
  /// The key under which a payload, a dictionary, names its attachment.
  package static let payloadKey = "@attachment"

  package static let directory = "attachments"
  package static let content = "content"
  package static let copyingPrefix = "copying-"
  package static let takenPrefix = "attachment-"
  package static let makingPrefix = "making-"
  package static let maximumIDBytes = 128

  package static func path(_ id: String) -> String { directory + "/" + id }

  package static func takenPath(_ id: String, by consumer: String) -> String {
    QueueDirectory.takenPath(consumer) + "/" + takenPrefix + id
  }

  /// Returns whether a text can be the name of an attachment: one safe component of a path.
  package static func isID(_ text: String) -> Bool {
    guard (1...maximumIDBytes).contains(text.utf8.count), text.utf8.first != UInt8(ascii: ".")
    else { return false }
    return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || "-.".contains($0) }
  }
}

extension PropertyListValue {
  /// The attachment that the payload of an entry names; nil if there is none.
  package var attachmentID: String? {
    guard case .dictionary = self, let id = self[AttachmentLayout.payloadKey]?.stringValue,
      AttachmentLayout.isID(id)
    else { return nil }
    return id
  }
}

extension QueueDirectory {
  // MARK: Taking and removing

  /// Makes an attachment the consumer's, before its entry is delivered or ends. A missing
  /// attachment is not an error here: its entry reports it.
  ///
  /// - Throws: `.noSuchFile` if the consumer was replaced.
  package func takeAttachment(_ id: String, by consumer: String) throws(Errno) {
    let path = AttachmentLayout.takenPath(id, by: consumer)
    let isMoved =
      try tolerating(
        [.noSuchFile, .alreadyExists], move(AttachmentLayout.path(id), to: path, .keep)) != nil
    if !isMoved, try !exists(Self.takenPath(consumer)) { throw .noSuchFile }
  }

  /// Removes the attachment of an entry that has ended.
  ///
  /// The entry's end is final, so nothing here is an error, for example if the consumer was just
  /// replaced.
  package func removeAttachment(_ id: String, of consumer: String) {
    // If it stays, the next consumer removes it.
    guard (try? takeAttachment(id, by: consumer)) != nil else { return }
    // If it stays, the next consumer removes it.
    try? removeAttachmentDirectory(AttachmentLayout.takenPath(id, by: consumer))
  }

  /// Removes an attachment and its content; a missing one is ignored.
  package func removeAttachmentDirectory(_ path: String) throws(Errno) {
    // Its sender may be adding a file at this moment; the number of attempts is limited.
    for _ in 0..<renameRaceLimit {
      guard let entries = try list(path) else { return }
      for entry in entries { try discard(path + "/" + entry.name.text) }
      if try removeIfEmpty(path) { return }
    }
    throw .deviceBusy
  }

  // MARK: Sweeping

  /// Removes leftovers of a sender that died while copying.
  func sweepAttachment(_ path: String) {
    do throws(Errno) {
      let directory = try openFile(path, [.readOnly, .directory])
      guard try directory.tryLock(.exclusive) else { return }
      let names = try directory.entries().map(\.name.text)
      guard !names.contains(AttachmentLayout.content) else { return }
      try removeAttachmentDirectory(path)
    } catch {
      // Taken, removed, or not a file of this package.
      return
    }
  }

  /// Removes leftovers of a consumer that died after settling an entry.
  ///
  /// - Parameter isNeeded: returns whether a taken entry names the attachment.
  package func sweepAttachments(takenBy consumer: String, isNeeded: (String) -> Bool) throws(Errno)
  {
    let path = Self.takenPath(consumer)
    for entry in try list(path) ?? [] {
      let name = entry.name.text
      guard name.hasPrefix(AttachmentLayout.takenPrefix),
        !isNeeded(String(name.dropFirst(AttachmentLayout.takenPrefix.count)))
      else { continue }
      try clear(path + "/" + name) { entry throws(Errno) in
        try removeAttachmentDirectory(entry)
      }
    }
  }

  /// Returns the names of all attachments that are not taken.
  package func attachmentDirectories() throws(Errno) -> [String] {
    try (list(AttachmentLayout.directory) ?? [])
      .filter { $0.isDirectory != false }.map(\.name.text).filter { AttachmentLayout.isID($0) }
  }
}

extension QueueDirectory {
  /// Returns the attachments that the entries of a batch name, in their order; none for a batch
  /// that is gone or unreadable, because the attachments that it named belong to its sender.
  package func attachmentIDs(_ name: EntryFile, in part: String) throws -> [String?] {
    try batch(name, in: part)?.entries.map { $0.payload?.attachmentID } ?? []
  }
}
