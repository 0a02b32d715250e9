import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem

// The files that accompany the entries of a queue on etcd: their keys, and the one transaction that
// makes or changes each of them.
//
// ```
// a/<id>            an attachment: its manifest; as in a directory, until it is taken
// u/<id>            the same, once a consumer has taken it, or keeps it with a failed entry
// t/<content>/<p>   a piece of content, at most 512 KiB; p is its number, with eight hexadecimal
//                   digits, "-", and its checksum, with sixteen; or in a directory, see `FilePieces`
// ```
//
// **Sending.** The manifest is put first, without a checksum, under a session. The pieces
// follow, each put without a condition, because a key's content never changes. The last step puts
// the manifest again, if it is unchanged, with the checksums and under no lease: from then on the
// content is whole.
//
// **Beginning again.** The next sender of a file removes what is left of it. A sender that was only
// stopped may still put pieces; it cannot make the content whole.
//
// **Renaming** and **taking** move the manifest from one key to another, under the condition that
// it is unchanged; so if a sender and a consumer act at once, one of them gets it. The pieces stay
// in place.
//
// **Ending.** The manifest and the pieces are deleted in the step that settles the entry. Pieces
// without a manifest were left by a sender that ended, or arrived late, and are swept: no manifest
// names them later, because a content has the first id of its attachment as its name.
extension EtcdQueue: AttachmentStore {
  /// For requests that each have the time of a call, however many there are, and whatever the
  /// container's limit.
  var files: EtcdContainer { container.with() }

  private func waitingKey(_ id: String) -> [UInt8] { key(.waitingFiles, id) }
  private func takenKey(_ id: String) -> [UInt8] { key(.takenFiles, id) }

  var pieces: any FilePieces { pieces(inDirectory: container.location.files != nil) ?? keyPieces }

  private var keyPieces: KeyPieces { KeyPieces(queue: self) }

  /// - Returns: nil for those in a directory that the location does not name.
  private func pieces(inDirectory: Bool) -> (any FilePieces)? {
    inDirectory ? container.location.files.map { DirectoryPieces($0, of: self) } : keyPieces
  }

  private func pieces(of manifest: AttachmentManifest) throws -> any FilePieces {
    guard let pieces = pieces(inDirectory: manifest.isInDirectory) else {
      throw WormholeError(
        .notSupported, "find the pieces of a file", path: path,
        reason: "they are in a directory of the sender's location, which this one does not name",
        remedy: "add files=DIRECTORY to the location on every machine")
    }
    return pieces
  }

  // MARK: Sending

  /// The place of a waiting attachment, for people.
  func location(of id: String) -> String { container.location(of: waitingKey(id)) }

  /// Begins an attachment, which lasts as long as a session until it is whole.
  ///
  /// - Returns: Its manifest as it was put; nil if a condition does not hold.
  func begin(
    _ id: String, _ manifest: AttachmentManifest, if conditions: [EtcdTransaction.Condition],
    session: EtcdSession
  ) throws -> KeyValue? {
    let commitRecord = EtcdContainer.CommitRecord(
      key: waitingKey(id), base: nil, value: try manifest.bytes())
    let outcome = try files.commit(
      .init(if: conditions, then: []), commitRecord, lease: session.lease)
    return outcome.succeeded ? commitRecord.item(at: outcome.revision) : nil
  }

  /// Makes it whole: it lasts from now on.
  ///
  /// - Parameter begun: Its manifest as it was put.
  /// - Returns: False if it no longer exists; then its unneeded pieces are removed.
  func complete(_ id: String, _ manifest: AttachmentManifest, begun: KeyValue) throws -> Bool {
    let isWhole = try files.commit(
      .init(if: begun.unchanged, then: []),
      .init(key: waitingKey(id), base: begun, value: manifest.bytes())
    ).succeeded
    if !isWhole { try sweepAttachments() }
    return isWhole
  }

  // MARK: Looking

  func waiting(prefix: String) throws -> [WaitingAttachment] {
    try manifests(prefix: prefix).map { .init(id: $0.id, isWhole: $0.manifest.isWhole) }
  }

  /// Returns the attachments that are not taken, and their ids.
  private func manifests(
    prefix: String
  ) throws -> [(id: String, manifest: AttachmentManifest)] {
    try files.read(.prefix(waitingKey(prefix))).items.compactMap { item in
      guard let manifest = AttachmentManifest(item.value) else { return nil }
      return (String(decoding: item.key.dropFirst(waitingKey("").count), as: UTF8.self), manifest)
    }
  }

  // MARK: Moving

  func rename(_ id: String, to newID: String) throws -> Bool {
    let (key, newKey) = (waitingKey(id), waitingKey(newID))
    return try move(key, try files.item(key), to: newKey, if: []) != nil
  }

  /// Makes an attachment a consumer's.
  ///
  /// - Parameter fence: Holds as long as the consumer was not replaced.
  /// - Returns: The key of the attachment; nil if it does not exist.
  /// - Throws: `EtcdError.leaseGone` if the consumer was replaced.
  func takeAttachment(
    _ id: String, if fence: EtcdTransaction.Condition
  ) throws -> KeyValue? {
    let (taken, waiting) = (takenKey(id), waitingKey(id))
    let found = try client.read(
      [.init(.key(taken)), .init(.key(waiting))], until: files.callDeadline
    ).items
    return try found[0].first ?? move(waiting, found[1].first, to: taken, if: [fence])
  }

  /// - Parameter first: The key as it was found.
  /// - Returns: The new key; nil if there was none to move.
  private func move(
    _ key: [UInt8], _ first: KeyValue?, to other: [UInt8],
    if conditions: [EtcdTransaction.Condition]
  ) throws -> KeyValue? {
    var found = first
    while let item = found, AttachmentManifest(item.value) != nil {
      let commitRecord = EtcdContainer.CommitRecord(
        key: other, base: nil, seen: item.modified, value: item.value)
      let outcome = try files.commit(
        .init(if: conditions + item.unchanged, then: [.delete(.key(key))]), commitRecord)
      if outcome.succeeded { return commitRecord.item(at: outcome.revision) }
      found = try files.item(key)
      // It was not refused because the manifest had changed.
      guard found?.modified != item.modified else { throw EtcdError(.leaseGone, "it was replaced") }
    }
    return nil
  }

  /// Returns the steps by which a kept attachment waits again, and on what condition.
  func givingBack(attachment id: String) throws -> EtcdTransaction {
    guard let item = try files.item(takenKey(id)) else { return .init(if: [], then: []) }
    return .init(
      if: item.unchanged,
      then: [.delete(.key(item.key)), .put(key: waitingKey(id), value: item.value)])
  }

  // MARK: Removing

  /// An attachment that is kept with a failure; nil without one.
  func takenAttachment(_ id: String) throws -> KeyValue? { try files.item(takenKey(id)) }

  /// Returns the steps that remove an attachment, if there is one. Then `discard`.
  func removal(of item: KeyValue?) -> [EtcdTransaction.Operation] {
    guard let item else { return [] }
    let manifest = AttachmentManifest(item.value)
    return [.delete(.key(item.key))]
      + (manifest.map { $0.isInDirectory ? [] : keyPieces.removal(of: $0.content) } ?? [])
  }

  /// Removes the content of a file from its directory after its manifest is gone.
  func discard(_ item: KeyValue) {
    guard let manifest = AttachmentManifest(item.value), manifest.isInDirectory else { return }
    // If this fails, a sweep removes the content, because its manifest is gone.
    try? pieces(inDirectory: true)?.discard(manifest.content)
  }

  /// Removes an attachment that is not taken; a missing one is ignored.
  func remove(_ id: String) throws {
    let deadline = files.callDeadline
    while let item = try files.item(waitingKey(id)) {
      let outcome = try files.repeating(.init(if: item.unchanged, then: removal(of: item)))
      if outcome.succeeded { return discard(item) }
      guard .now < deadline else {
        throw EtcdError(.unreachable, "others change the same all the time")
      }
    }
  }

  /// Removes what no process will request: content without an attachment, and attachments that were
  /// taken with entries that are gone.
  ///
  /// - Complexity: one request as long as no files are sent; otherwise reads the whole queue.
  func sweepAttachments() throws {
    // Before their manifests, which come first.
    let stores = [keyPieces, pieces(inDirectory: true)].compactMap(\.self)
    let found = try stores.map { try $0.contents() }
    guard found.contains(where: { !$0.isEmpty }) else { return }
    // At one revision, at which all references are valid.
    let all = try client.read(
      [QueueKeyPart.takenFiles, .waitingFiles, .entries, .failures].map { .init(range($0)) },
      until: files.callDeadline
    ).items
    let (taken, waiting, entries, kept) = (all[0], all[1], all[2], all[3])
    let contents = Set((waiting + taken).compactMap { AttachmentManifest($0.value)?.content })
    for (pieces, found) in zip(stores, found) {
      // No manifest names them, or will.
      for content in found.subtracting(contents) {
        let isGone = try files.repeating(
          .init(if: [.absent(waitingKey(content))], then: pieces.removal(of: content))
        ).succeeded
        if isGone { try pieces.discard(content) }
      }
    }
    guard !taken.isEmpty else { return }
    let needed = Set((entries + kept).flatMap { Self.ids(in: $0) }.compactMap { $0 })
    for item in taken {
      let id = String(decoding: item.key.dropFirst(takenKey("").count), as: UTF8.self)
      guard !needed.contains(id) else { continue }
      if try files.repeating(.init(if: item.unchanged, then: removal(of: item))).succeeded {
        discard(item)
      }
    }
  }

  /// The attachments that the entries of a batch, or of its kept failures, name, in their order.
  private static func ids(in item: KeyValue) -> [String?] {
    // Content of another program names no file, and the next consumer removes it.
    let entries = PropertyListValue(found: item.value)?["entries"]?.arrayValue
    return (entries ?? []).map { $0["payload"]?.attachmentID }
  }

  // MARK: Receiving

  /// Writes the content into a file.
  ///
  /// - Returns: Whether the content is as it was sent.
  /// - Throws: `EtcdError`; an `Errno` of the files.
  func download(
    _ manifest: AttachmentManifest, into file: borrowing FileDescriptor
  ) throws -> Bool {
    guard let whole = manifest.whole else { return false }
    let limit = container.location.fileLimit
    guard manifest.size <= limit else {
      throw WormholeError(
        .notSupported, "receive a file", path: path,
        reason: "it has \(manifest.size) bytes, and this location's limit is \(limit)",
        remedy: "raise file-limit= in the location on this machine; the file waits")
    }
    var hash = XXH64()
    var done: Int64 = 0
    let pieces = try pieces(of: manifest)
    if !whole.pieces.isEmpty { try pieces.confirm() }
    var fetching = RequestsUnderWay<[UInt8]?>()
    defer { fetching.drain() }
    var (begun, fetched) = (0, 0)
    while fetched < whole.pieces.count {
      while begun < whole.pieces.count, !fetching.isFull {
        let checksum = whole.pieces[begun]
        let name = AttachmentManifest.pieceName(
          of: manifest.content, number: begun, checksum: checksum)
        fetching.add { try pieces.read(name) }
        begun += 1
      }
      guard let piece = try fetching.next(), done + Int64(piece.count) <= manifest.size else {
        return false
      }
      try file.writeAll(piece)
      piece.withUnsafeBytes { hash.update($0) }
      done += Int64(piece.count)
      fetched += 1
    }
    return done == manifest.size && hash.value == whole.checksum
  }
}
