import PropertyLists
import SystemCalls

/// Files that live and die with an entry of a queue: what lies there, and the one step that makes or
/// moves each of it.
///
/// ```
/// attachments/<id>/                          an attachment; who makes it has the directory locked
/// attachments/<id>/copying-<total>-<sender>  content on its way, of so many bytes
/// attachments/<id>/content                   whole: renamed from copying-…, or from the file handed over
/// taken/<consumer>/attachment-<id>/          the consumer's: renamed from attachments/<id>
/// taken/<consumer>/making-<id>/              of the queue that the sender itself consumes: an attachment for
///                                            another queue, before it is renamed there
/// ```
///
/// **Sending.** Make the directory and lock it; give it its content through its descriptor; store the
/// entry, whose payload names it (`QueueAttachment.key`); only then close the directory.
///
/// **Receiving.** Before it delivers an entry the consumer renames the attachment into its own directory,
/// and whatever it does with it is a call on a path through that directory's name. So one that was
/// replaced while it was stopped finds nothing there (ENOENT): it neither claims nor deletes what its
/// successor handles. When the entry ends, however, the attachment is removed; unless its content was
/// renamed away before: claimed.
///
/// **Sent again.** A sender that does so because of an entry in a queue of its own makes the attachment in
/// its directory in `taken/` there, and renames it from there: one that was replaced before makes none any
/// more. What it had made by then its successor finds, and gives it another name or removes it: then what the
/// stopped one renames into it, through its descriptor of what was removed, fails (ENOENT), and an entry
/// that it stores after all names an attachment that is not there.
///
/// **What a crash leaves**: an unlocked directory without `content`, swept by the next consumer; an
/// attachment in `taken/` that no entry there names, swept by the next consumer; and one with `content`
/// in `attachments/` that no entry names. That one may be the only copy of a file, and its sender knows
/// whether it is: so only its sender finishes or removes it.
enum AttachmentPlace {
  static let directory = "attachments"
  static let content = "content"
  static let copyingPrefix = "copying-"
  static let takenPrefix = "attachment-"
  static let makingPrefix = "making-"
  static let maximumIDBytes = 128

  static func path(_ id: String) -> String { directory + "/" + id }

  static func takenPath(_ id: String, by consumer: String) -> String {
    "\(QueueDirectory.taken)/\(consumer)/\(takenPrefix)\(id)"
  }

  /// What is being copied, from the name of its file; nil for any other name.
  static func copying(_ name: String) -> (total: Int64, sender: String)? {
    guard name.hasPrefix(copyingPrefix) else { return nil }
    let parts = name.dropFirst(copyingPrefix.count).split(
      separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let total = Int64(parts[0]), total >= 0 else { return nil }
    guard case .identifier(let sender) = EncodedName.decode(parts[1].utf8) else { return nil }
    return (total, sender)
  }

  /// Whether a text can be the name of an attachment: one safe component of a path.
  static func isID(_ text: String) -> Bool {
    guard (1...maximumIDBytes).contains(text.utf8.count), text.utf8.first != UInt8(ascii: ".")
    else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
        true
      default: false
      }
    }
  }
}

extension PropertyListValue {
  /// The attachment that the payload of an entry names; nil for one without.
  var attachmentID: String? {
    guard case .dictionary = self, let id = self[QueueAttachment.key]?.stringValue,
      AttachmentPlace.isID(id)
    else { return nil }
    return id
  }
}

extension QueueDirectory {
  // MARK: Taking and removing

  /// Makes an attachment the consumer's, before its entry is delivered or ends. One that is not there is
  /// no error: its entry says so.
  ///
  /// - Throws: `.noSuchFile` when the consumer was replaced.
  func takeAttachment(
    _ id: String, by consumer: String, at place: borrowing FileDescriptor
  ) throws(Errno) {
    do throws(Errno) {
      try rename(
        AttachmentPlace.path(id), at: place.rawValue,
        to: AttachmentPlace.takenPath(id, by: consumer), at: place.rawValue, .keep)
    } catch {
      guard error == .noSuchFile || error == .alreadyExists else { throw error }
      guard try exists(Self.taken + "/" + consumer, at: place) else { throw .noSuchFile }
    }
  }

  /// Removes the attachment of an entry that has ended.
  ///
  /// The entry's end stands, so nothing here is an error: what cannot be removed now, because the
  /// consumer was just replaced for example, the next consumer removes.
  func removeAttachment(
    _ id: String, of consumer: String, at place: borrowing FileDescriptor
  ) {
    do throws(Errno) {
      try takeAttachment(id, by: consumer, at: place)
      try removeAttachmentDirectory(AttachmentPlace.takenPath(id, by: consumer), at: place)
    } catch {
      // As said above.
      return
    }
  }

  /// Removes an attachment and what is in it; one that is not there is fine.
  func removeAttachmentDirectory(
    _ path: String, at place: borrowing FileDescriptor
  ) throws(Errno) {
    // Its sender may be adding a file just now; not again and again.
    for _ in 0..<interruptionLimit {
      guard let entries = try SharedContainer.entries(path, at: place.rawValue) else { return }
      for entry in entries { try discard(path + "/" + entry.name.text, at: place) }
      do throws(Errno) {
        return try removeDirectory(path, at: place.rawValue)
      } catch {
        if error == .noSuchFile { return }
        guard error == .directoryNotEmpty else { throw error }
      }
    }
    throw .deviceBusy
  }

  // MARK: Sweeping

  /// Removes what senders left who died while they copied.
  func sweepAttachments(at place: borrowing FileDescriptor) throws(Errno) {
    for entry in try attachmentDirectories(at: place) {
      let path = AttachmentPlace.path(entry)
      do throws(Errno) {
        let directory = try FileDescriptor.openBeneath(
          path, at: place.rawValue, [.readOnly, .directory])
        guard try directory.tryLock(.exclusive) else { continue }
        let names = try directory.entries().map(\.name.text)
        guard !names.contains(AttachmentPlace.content) else { continue }
        try removeAttachmentDirectory(path, at: place)
      } catch {
        // Taken, or removed, or none of ours.
        continue
      }
    }
  }

  /// Removes what a consumer has left that died when it had settled an entry.
  ///
  /// - Parameter isNeeded: whether an entry that is taken names it.
  func sweepAttachments(
    takenBy consumer: String, at place: borrowing FileDescriptor, isNeeded: (String) -> Bool
  ) throws(Errno) {
    let path = Self.taken + "/" + consumer
    for entry in try SharedContainer.entries(path, at: place.rawValue) ?? [] {
      let name = entry.name.text
      guard name.hasPrefix(AttachmentPlace.takenPrefix),
        !isNeeded(String(name.dropFirst(AttachmentPlace.takenPrefix.count)))
      else { continue }
      try removeAttachmentDirectory(path + "/" + name, at: place)
    }
  }

  /// The names of all attachments that are not taken.
  func attachmentDirectories(at place: borrowing FileDescriptor) throws(Errno) -> [String] {
    try (SharedContainer.entries(AttachmentPlace.directory, at: place.rawValue) ?? [])
      .filter { $0.isDirectory != false }.map(\.name.text).filter { AttachmentPlace.isID($0) }
  }
}
