package import Wormhole
package import WormholeInspection
import WormholePropertyLists
package import WormholeSystem

/// The files that accompany the entries of a queue on etcd: their keys, and the one transaction that
/// makes or changes each of them.
///
/// ```
/// a/<id>            an attachment: its manifest; as in a directory, until it is taken
/// u/<id>            the same, once a consumer has taken it, or keeps it with a failed entry
/// t/<content>/<p>   a piece of content, at most 512 KiB; p is its number, with eight hexadecimal
///                   digits, "-", and its checksum, with sixteen
/// ```
///
/// **Sending.** The manifest is put first, without a checksum, under a lasting session. The pieces
/// follow, each put without a condition, because a key's content never changes. The last step puts
/// the manifest again, if it is unchanged, with the checksums and under no lease: from then on the
/// content is whole.
///
/// **Continuing.** The next sender of a file moves the manifest to an id of its own, under the
/// condition that it is unchanged and not whole, and puts the missing pieces. An earlier sender
/// that was only stopped may still put pieces: the same ones, or others if the file has changed
/// since, which have other keys. It cannot make the content whole.
///
/// **Renaming** and **taking** move the manifest from one key to another, under the condition that
/// it is unchanged; so if a sender and a consumer act at once, one of them gets it. The pieces stay
/// in place.
///
/// **Ending.** The manifest and the pieces are deleted in the step that settles the entry. Pieces
/// without a manifest were left by a sender that ended, or arrived late, and are swept: no manifest
/// names them later, because a content has the first id of its attachment as its name.
package struct EtcdAttachments: Sendable {
  package let container: EtcdContainer
  private let prefix: [UInt8]

  /// - Parameter prefix: The beginning of the queue's keys.
  package init(_ container: EtcdContainer, prefix: [UInt8]) {
    self.container = container
    self.prefix = prefix
  }

  private var client: EtcdClient { container.client }
  /// Each piece has the time of a call, however many there are, and whatever the container's limit.
  var soon: ContinuousClock.Instant { .now + CallLimit.standardWait }

  private func key(_ part: QueueKeyPart, _ name: String = "") -> [UInt8] {
    prefix + part.bytes(name)
  }
  private func waitingKey(_ id: String) -> [UInt8] { key(.waitingFiles, id) }
  private func takenKey(_ id: String) -> [UInt8] { key(.takenFiles, id) }

  private func pieces(_ content: String) -> KeyRange { .prefix(key(.pieces, content + "/")) }

  /// A description of the place of an attachment.
  package func location(of id: String) -> String { container.location(of: waitingKey(id)) }

  // MARK: Sending

  /// An attachment that is being sent.
  package struct Begun: Sendable {
    /// Its manifest as it was put.
    let item: KeyValue
    package var manifest: AttachmentManifest
    /// The existing pieces, by their keys.
    var present: Set<[UInt8]> = []
  }

  /// Begins an attachment, or continues one, which lasts as long as a session until it is whole.
  ///
  /// - Parameter old: Attachments that earlier senders of the same file may have begun.
  /// - Returns: Nil if a condition does not hold.
  package func begin(
    _ id: String, _ manifest: AttachmentManifest, continuing old: [String],
    if conditions: [EtcdTransaction.Condition], session: EtcdSession
  ) throws -> Begun? {
    for other in old {
      guard let item = try item(waitingKey(other)), let found = AttachmentManifest(item.value),
        !found.isWhole, found.size == manifest.size
      else { continue }
      var manifest = manifest
      manifest.content = found.content
      let begun = try begin(
        id, manifest,
        change: .init(
          if: conditions + item.unchanged,
          then: [.delete(.key(item.key))]), session: session)
      guard var begun else { continue }
      let present = try client.read(pieces(found.content), keysOnly: true, until: soon).items
      begun.present = Set(present.map(\.key))
      return begun
    }
    return try begin(id, manifest, change: .init(if: conditions, then: []), session: session)
  }

  private func begin(
    _ id: String, _ manifest: AttachmentManifest, change: EtcdTransaction, session: EtcdSession
  ) throws -> Begun? {
    let witness = EtcdContainer.Witness(
      key: waitingKey(id), base: nil, value: try manifest.bytes())
    let outcome = try container.commit(change, witness, lease: session.lease, until: soon)
    return outcome.succeeded
      ? Begun(item: witness.item(at: outcome.revision), manifest: manifest) : nil
  }

  /// Puts a piece, unless it exists.
  package func put(
    _ bytes: [UInt8], _ number: Int, checksum: UInt64, of begun: inout Begun
  ) throws {
    let key = key(
      .pieces,
      AttachmentManifest.pieceName(
        of: begun.manifest.content, number: number, checksum: checksum))
    // The rest is useless.
    guard begun.present.remove(key) == nil else { return }
    try client.put(key, bytes, until: soon)
  }

  /// Makes it whole: it lasts from now on.
  ///
  /// - Returns: False if it no longer exists; then its unneeded pieces are removed.
  package func complete(_ id: String, _ begun: Begun) throws -> Bool {
    let others = begun.present.prefix(EtcdContainer.maximumOperations / 2)
    let isWhole = try container.commit(
      .init(
        if: begun.item.unchanged,
        then: others.map { .delete(.key($0)) }),
      .init(key: waitingKey(id), base: begun.item, value: begun.manifest.bytes()),
      until: soon
    ).succeeded
    if !isWhole { try sweep() }
    return isWhole
  }

  // MARK: Looking

  /// Returns the attachments that are not taken, and their ids.
  package func waiting(prefix: String = "") throws -> [(id: String, manifest: AttachmentManifest)] {
    try client.read(.prefix(waitingKey(prefix)), until: soon).items.compactMap { item in
      guard let manifest = AttachmentManifest(item.value) else { return nil }
      return (String(decoding: item.key.dropFirst(waitingKey("").count), as: UTF8.self), manifest)
    }
  }

  /// Returns how many bytes of an attachment exist.
  package func completed(_ manifest: AttachmentManifest) throws -> Int64 {
    let count = try client.count(pieces(manifest.content), until: soon)
    return min(manifest.size, Int64(count) * Int64(AttachmentManifest.piece))
  }

  /// Whether the process that sends an attachment lives.
  package func isSent(_ manifest: AttachmentManifest) throws -> Bool {
    do throws(EtcdError) {
      _ = try client.leaseStatus(manifest.session, until: soon)
      return true
    } catch {
      guard error.code == .leaseGone else { throw error }
      return false
    }
  }

  /// Returns the attachment that waits under an id; nil if there is none.
  package func manifest(_ id: String) throws -> AttachmentManifest? {
    try item(waitingKey(id)).flatMap { AttachmentManifest($0.value) }
  }

  private func item(_ key: [UInt8]) throws -> KeyValue? {
    try client.page(.key(key), limit: 1, until: soon).items.first
  }

  // MARK: Moving

  /// Gives an attachment that is not taken another id.
  ///
  /// - Returns: The attachment; nil if it does not exist.
  package func rename(_ id: String, to other: String) throws -> AttachmentManifest? {
    try move(waitingKey(id), to: waitingKey(other), if: [])
  }

  /// Makes an attachment a consumer's.
  ///
  /// - Parameter fence: Holds as long as the consumer was not replaced.
  /// - Returns: The attachment; nil if it does not exist.
  /// - Throws: `EtcdError.leaseGone` if the consumer was replaced.
  package func take(_ id: String, if fence: EtcdTransaction.Condition) throws -> AttachmentManifest?
  {
    if let taken = try item(takenKey(id)) { return AttachmentManifest(taken.value) }
    // No other process moves it between these two looks: the entry is this consumer's.
    return try move(waitingKey(id), to: takenKey(id), if: [fence])
  }

  private func move(
    _ key: [UInt8], to other: [UInt8], if conditions: [EtcdTransaction.Condition]
  ) throws -> AttachmentManifest? {
    var refused: Int64?
    while let item = try item(key) {
      // It was not refused because the manifest had changed.
      guard refused != item.modified else { throw EtcdError(.leaseGone, "it was replaced") }
      guard let manifest = AttachmentManifest(item.value) else { return nil }
      let outcome = try container.commit(
        .init(
          if: conditions + item.unchanged, then: [.delete(.key(key))]),
        .init(key: other, base: nil, seen: item.modified, value: item.value), until: soon)
      if outcome.succeeded { return manifest }
      refused = item.modified
    }
    return nil
  }

  /// Returns the steps by which a kept attachment waits again, and on what condition.
  package func givingBack(_ id: String) throws -> EtcdTransaction {
    guard let item = try item(takenKey(id)) else { return .init(if: [], then: []) }
    return .init(
      if: item.unchanged,
      then: [.delete(.key(item.key)), .put(key: waitingKey(id), value: item.value)])
  }

  // MARK: Removing

  /// Returns the steps that remove an attachment that a consumer has taken, or keeps.
  package func removal(ofTaken id: String) throws -> [EtcdTransaction.Operation] {
    try item(takenKey(id)).map(removal) ?? []
  }

  private func removal(_ item: KeyValue) -> [EtcdTransaction.Operation] {
    [.delete(.key(item.key))]
      + (AttachmentManifest(item.value).map { [.delete(pieces($0.content))] } ?? [])
  }

  /// Removes an attachment that is not taken; a missing one is ignored.
  package func remove(_ id: String) throws {
    let deadline = soon
    while let item = try item(waitingKey(id)) {
      let outcome = try container.repeating(
        .init(if: item.unchanged, then: removal(item)), until: soon)
      if outcome.succeeded { return }
      guard .now < deadline else {
        throw EtcdError(.unreachable, "others change the same all the time")
      }
    }
  }

  /// Removes what no process will request: content without an attachment, and attachments that were
  /// taken with entries that are gone.
  ///
  /// - Complexity: one request as long as no files are sent; otherwise reads the whole queue.
  package func sweep() throws {
    let first = try client.page(.prefix(key(.pieces)), keysOnly: true, limit: 1, until: soon)
    guard !first.items.isEmpty else { return }
    // At one revision, at which all references are valid.
    let all = try client.read(
      [QueueKeyPart.takenFiles, .waitingFiles, .pieces, .entries, .failures].map {
        .init(.prefix(key($0)), keysOnly: $0 == .pieces)
      }, until: soon
    ).items
    let (taken, waiting, pieces, entries, kept) = (all[0], all[1], all[2], all[3], all[4])
    let contents = Set((waiting + taken).compactMap { AttachmentManifest($0.value)?.content })
    let start = key(.pieces).count
    let found = Set(
      pieces.map {
        String(decoding: $0.key.dropFirst(start).prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
      })
    for content in found.subtracting(contents) { try removePieces(content) }
    guard !taken.isEmpty else { return }
    let needed = Set((entries + kept).flatMap { Self.ids(in: $0) }.compactMap { $0 })
    for item in taken {
      let id = String(decoding: item.key.dropFirst(takenKey("").count), as: UTF8.self)
      guard !needed.contains(id) else { continue }
      _ = try container.repeating(
        .init(if: item.unchanged, then: removal(item)), until: soon)
    }
  }

  /// Removes pieces that no manifest names, or will.
  private func removePieces(_ content: String) throws {
    _ = try container.repeating(
      .init(if: [.absent(waitingKey(content))], then: [.delete(pieces(content))]), until: soon)
  }

  /// Returns an entry of a sender that waits or is taken, and names an attachment with a prefix; nil if
  /// there is none.
  ///
  /// - Parameter sender: encoded.
  package func entry(of sender: String, prefix: String) throws -> QueueEntryID? {
    let start = key(.entries).count
    for item in try client.read(.prefix(key(.entries)), until: soon).items {
      guard let batch = EntryFile(bytes: Array(item.key.dropFirst(start))), batch.sender == sender,
        let index = Self.ids(in: item).firstIndex(where: { $0?.hasPrefix(prefix) == true })
      else { continue }
      return QueueEntryID(batch: batch, index: index)
    }
    return nil
  }

  /// The attachments that the entries of a batch, or of its kept failures, name, in their order.
  private static func ids(in item: KeyValue) -> [String?] {
    do throws(PropertyListError) {
      let entries = try PropertyListValue(bytes: item.value)["entries"]?.arrayValue ?? []
      return entries.map { $0["payload"]?.attachmentID }
    } catch {
      // Not a batch: it names nothing, and the next consumer removes it.
      return []
    }
  }

  // MARK: Receiving

  /// Writes the content into a file.
  ///
  /// - Parameter part: The part that was written earlier, from its beginning; a correct piece in it
  ///   is not requested.
  /// - Returns: Whether the content is as it was sent.
  /// - Throws: `EtcdError`; an `Errno` of the files.
  package func download(
    _ manifest: AttachmentManifest, into file: borrowing FileDescriptor,
    continuing part: SharedDescriptor? = nil
  ) throws -> Bool {
    guard let whole = manifest.whole, manifest.size <= container.location.fileLimit else {
      return false
    }
    var hash = XXH64()
    var done: Int64 = 0
    for (number, checksum) in whole.pieces.enumerated() {
      let key = key(
        .pieces,
        AttachmentManifest.pieceName(of: manifest.content, number: number, checksum: checksum))
      let piece =
        try part?.descriptor.piece(
          Int(min(Int64(AttachmentManifest.piece), manifest.size - done)), checksum)
        ?? item(key)?.value
      guard let piece, done + Int64(piece.count) <= manifest.size else { return false }
      try file.writeAll(piece)
      piece.withUnsafeBytes { hash.update($0) }
      done += Int64(piece.count)
    }
    return done == manifest.size && hash.value == whole.checksum
  }
}

extension FileDescriptor {
  /// Reads the next piece of a file.
  ///
  /// - Returns: nil if it has another checksum.
  fileprivate borrowing func piece(_ count: Int, _ checksum: UInt64) throws(Errno) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var read: Result<Int, Errno> = .success(0)
    bytes.withUnsafeMutableBytes { buffer in
      read = Result { () throws(Errno) in try fill(buffer) }
    }
    guard try read.get() == count, XXH64.checksum(of: bytes) == checksum else { return nil }
    return bytes
  }
}
