package import Containers
import Digests
import Entries
package import EtcdClient
import PropertyLists
package import SystemCalls

/// The files that accompany the entries of a queue on etcd: their keys, and the one transaction that
/// makes or changes each of them.
///
/// ```
/// a/<id>            an attachment: its manifest; as in a directory, until it is taken
/// u/<id>            the same, once a consumer has taken it, or keeps it with a failed entry
/// t/<content>/<n>   a piece of content, at most 512 KiB; n has eight hexadecimal digits
/// ```
///
/// **Sending.** The manifest is put first, without a checksum, under the session of the sender's
/// process, and goes with that. The pieces follow, each put without a condition, because nobody else
/// puts its key. The last step puts the manifest again, if it is as it was, with the checksum and under
/// no lease: from then on the content is whole.
///
/// **Renaming** and **taking** move the manifest from one key to another, under the condition that it
/// is as it was; so a sender and a consumer that act at once have it or not. The pieces stay where they
/// are.
///
/// **Ending.** The manifest and the pieces are deleted in the step that settles the entry. Pieces that no
/// manifest names were left by a sender that ended, or came late, and are swept: no manifest names them
/// later, because the name of content is the first id of its attachment, which is used once.
package struct EtcdAttachments: Sendable {
  /// What is known of an attachment.
  package struct Manifest: Sendable, Hashable {
    /// The name of its pieces.
    package let content: String
    package let size: Int64
    package let sender: String
    /// Nil as long as the content is not whole.
    package var checksum: UInt64?

    package var isWhole: Bool { checksum != nil }

    package init(content: String, size: Int64, sender: String) {
      self.content = content
      self.size = size
      self.sender = sender
    }

    /// - Returns: nil for what somebody else has put.
    package init?(_ bytes: [UInt8]) {
      do throws(PropertyListError) {
        let value = try PropertyListValue(bytes: bytes)
        guard let content = value["content"]?.stringValue, AttachmentPlace.isID(content),
          let size = value["size"]?.int64Value, size >= 0
        else { return nil }
        self.init(content: content, size: size, sender: value["sender"]?.stringValue ?? "")
        checksum = value["checksum"]?.stringValue.flatMap { UInt64($0, radix: 16) }
      } catch {
        return nil
      }
    }

    package func bytes() throws -> [UInt8] {
      var value: PropertyListValue = [
        "content": .string(content), "size": .integer(size), "sender": .string(sender),
      ]
      value["checksum"] = checksum.map { .string(String($0, radix: 16)) }
      return try value.binaryBytes()
    }
  }

  /// The size of a piece.
  package static let piece = 512 << 10

  package let container: EtcdContainer
  private let prefix: [UInt8]

  /// - Parameter prefix: What the keys of the queue begin with.
  package init(_ container: EtcdContainer, prefix: [UInt8]) {
    self.container = container
    self.prefix = prefix
  }

  private var client: EtcdClient { container.client }
  private var soon: ContinuousClock.Instant { .now + EtcdContainer.standardWait }

  private func key(_ part: String) -> [UInt8] { prefix + Array(part.utf8) }
  private func waitingKey(_ id: String) -> [UInt8] { key("a/" + id) }
  private func takenKey(_ id: String) -> [UInt8] { key("u/" + id) }

  private func pieceKey(_ content: String, _ number: Int64) -> [UInt8] {
    key(Self.piecePart(content, number))
  }

  /// What follows the name of the queue in the key of a piece.
  package static func piecePart(_ content: String, _ number: Int64) -> String {
    let digits = String(number, radix: 16)
    return "t/\(content)/" + String(repeating: "0", count: max(0, 8 - digits.utf8.count)) + digits
  }

  private func pieces(_ content: String) -> KeyRange { .prefix(key("t/\(content)/")) }

  /// The words for the place of an attachment.
  package func location(of id: String) -> String { container.location(of: waitingKey(id)) }

  // MARK: Sending

  /// Begins an attachment, which lasts as long as a session until it is whole.
  ///
  /// - Returns: The revision at which that was done; nil if a condition does not hold.
  package func begin(
    _ id: String, _ manifest: Manifest, if conditions: [EtcdTransaction.Condition],
    _ session: EtcdSession
  ) throws -> Int64? {
    let outcome = try container.commit(
      .init(if: conditions, then: []),
      .init(key: waitingKey(id), base: 0, seen: 0, value: manifest.bytes()),
      lease: session.lease, until: soon)
    return outcome.succeeded ? outcome.revision : nil
  }

  /// Puts a piece.
  package func put(_ bytes: [UInt8], _ number: Int64, of manifest: Manifest) throws {
    try client.put(pieceKey(manifest.content, number), bytes, until: soon)
  }

  /// Makes it whole: it lasts from now on.
  ///
  /// - Returns: False if it is not there any more; then its pieces are removed, which nobody needs.
  package func complete(_ id: String, _ manifest: Manifest, begun: Int64) throws -> Bool {
    let isWhole = try container.commit(
      .init(if: [], then: []),
      .init(key: waitingKey(id), base: begun, seen: begun, value: manifest.bytes()), until: soon
    ).succeeded
    if !isWhole { try removePieces(manifest.content) }
    return isWhole
  }

  // MARK: Looking

  /// Returns the attachments that are not taken, and their ids.
  package func waiting(prefix: String = "") throws -> [(id: String, manifest: Manifest)] {
    try client.read(.prefix(waitingKey(prefix)), until: soon).items.compactMap { item in
      guard let manifest = Manifest(item.value) else { return nil }
      return (String(decoding: item.key.dropFirst(waitingKey("").count), as: UTF8.self), manifest)
    }
  }

  /// Returns how many bytes of an attachment are there.
  package func completed(_ manifest: Manifest) throws -> Int64 {
    guard !manifest.isWhole else { return manifest.size }
    let count = try client.count(pieces(manifest.content), until: soon)
    return min(manifest.size, Int64(count) * Int64(Self.piece))
  }

  /// Returns what waits under an id; nil if there is nothing.
  package func manifest(_ id: String) throws -> Manifest? {
    try item(waitingKey(id)).flatMap { Manifest($0.value) }
  }

  private func item(_ key: [UInt8]) throws -> KeyValue? {
    try client.page(.key(key), limit: 1, until: soon).items.first
  }

  // MARK: Moving

  /// Gives an attachment that is not taken another id.
  ///
  /// - Returns: What it is; nil if it is not there.
  package func rename(_ id: String, to other: String) throws -> Manifest? {
    try move(waitingKey(id), to: waitingKey(other), if: [])
  }

  /// Makes an attachment a consumer's.
  ///
  /// - Parameter fence: Holds as long as the consumer was not replaced.
  /// - Returns: What it is; nil if it is not there.
  /// - Throws: `EtcdError.leaseGone` if the consumer was replaced.
  package func take(_ id: String, if fence: EtcdTransaction.Condition) throws -> Manifest? {
    if let taken = try item(takenKey(id)) { return Manifest(taken.value) }
    // Nobody else moves it between these two looks: the entry is this consumer's.
    return try move(waitingKey(id), to: takenKey(id), if: [fence])
  }

  private func move(
    _ key: [UInt8], to other: [UInt8], if conditions: [EtcdTransaction.Condition]
  ) throws -> Manifest? {
    var refused: Int64?
    while let item = try item(key) {
      // It was not refused because the manifest had changed.
      guard refused != item.modified else { throw EtcdError(.leaseGone, "it was replaced") }
      guard let manifest = Manifest(item.value) else { return nil }
      let outcome = try container.commit(
        .init(
          if: conditions + [.modified(key, at: item.modified)], then: [.delete(.key(key))]),
        .init(key: other, base: 0, seen: item.modified, value: item.value), until: soon)
      if outcome.succeeded { return manifest }
      refused = item.modified
    }
    return nil
  }

  /// Returns the steps by which a kept attachment waits again, and on what condition.
  package func givingBack(_ id: String) throws -> EtcdTransaction {
    guard let item = try item(takenKey(id)) else { return .init(if: [], then: []) }
    return .init(
      if: [.modified(item.key, at: item.modified)],
      then: [.delete(.key(item.key)), .put(key: waitingKey(id), value: item.value)])
  }

  // MARK: Removing

  /// Returns the steps that remove an attachment that a consumer has taken, or keeps.
  package func removal(ofTaken id: String) throws -> [EtcdTransaction.Operation] {
    try item(takenKey(id)).map(removal) ?? []
  }

  private func removal(_ item: KeyValue) -> [EtcdTransaction.Operation] {
    [.delete(.key(item.key))] + (Manifest(item.value).map { [.delete(pieces($0.content))] } ?? [])
  }

  /// Removes an attachment that is not taken; one that is not there is no error.
  package func remove(_ id: String) throws {
    while let item = try item(waitingKey(id)) {
      let outcome = try container.repeating(
        .init(if: [.modified(item.key, at: item.modified)], then: removal(item)), until: soon)
      if outcome.succeeded { return }
    }
  }

  /// Removes what nobody will ask for: content that no attachment has, and attachments that were taken
  /// with entries that are gone.
  ///
  /// - Complexity: one request as long as no files are sent; otherwise reads the whole queue.
  package func sweep() throws {
    let first = try client.page(.prefix(key("t/")), keysOnly: true, limit: 1, until: soon)
    guard !first.items.isEmpty else { return }
    // At one revision, at which what is referred to is there.
    let all = try client.read(
      ["u/", "a/", "t/", "e/", "f/"].map { .init(.prefix(key($0)), keysOnly: $0 == "t/") },
      until: soon
    ).items
    let (taken, waiting, pieces, entries, kept) = (all[0], all[1], all[2], all[3], all[4])
    let contents = Set((waiting + taken).compactMap { Manifest($0.value)?.content })
    let start = key("t/").count
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
        .init(if: [.modified(item.key, at: item.modified)], then: removal(item)), until: soon)
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
    let start = key("e/").count
    for item in try client.read(.prefix(key("e/")), until: soon).items {
      guard let batch = EntryFile(bytes: Array(item.key.dropFirst(start))), batch.sender == sender,
        let index = Self.ids(in: item).firstIndex(where: { $0?.hasPrefix(prefix) == true })
      else { continue }
      return QueueEntryID(batch: batch, index: index)
    }
    return nil
  }

  /// The attachments that the entries of a batch, or of what was kept of it, name, in their order.
  private static func ids(in item: KeyValue) -> [String?] {
    do throws(PropertyListError) {
      let entries = try PropertyListValue(bytes: item.value)["entries"]?.arrayValue ?? []
      return entries.map { $0["payload"]?.attachmentID }
    } catch {
      // No batch: it names nothing, and goes with the next consumer.
      return []
    }
  }

  // MARK: Receiving

  /// Writes the content into a file.
  ///
  /// - Returns: Whether it is what was sent.
  /// - Throws: `EtcdError`; an `Errno` of the file.
  package func download(
    _ manifest: Manifest, into file: borrowing FileDescriptor
  ) throws -> Bool {
    guard let checksum = manifest.checksum, manifest.size <= container.location.fileLimit else {
      return false
    }
    var hash = XXH64()
    var done: Int64 = 0
    var number: Int64 = 0
    while done < manifest.size, let piece = try item(pieceKey(manifest.content, number)) {
      guard !piece.value.isEmpty, done + Int64(piece.value.count) <= manifest.size else { break }
      try file.writeAll(piece.value)
      piece.value.withUnsafeBytes { hash.update($0) }
      done += Int64(piece.value.count)
      number += 1
    }
    return done == manifest.size && hash.value == checksum
  }
}

extension QueueDirectory {
  /// How the directories of consumers begin that belong to a queue on etcd.
  package static let etcdPrefix = "etcd-"

  /// Puts a file that came through etcd where a consumer's attachments lie, unless it lies there already.
  ///
  /// - Parameters:
  ///   - isClaimed: whether it was claimed: then nothing but its directory is made.
  ///   - download: Writes the content, and returns whether it is what was sent; damaged content becomes
  ///     an empty file, whose size is not what its entry says.
  package func receive(
    _ id: String, by consumer: String, isClaimed: Bool,
    _ download: (borrowing FileDescriptor) throws -> Bool
  ) throws {
    try prepare(consumer)
    let path = AttachmentPlace.takenPath(id, by: consumer)
    guard try !exists(path) else { return }
    try makeDirectory(path)
    guard !isClaimed else { return }
    let (incoming, content) = (path + "/incoming", path + "/" + AttachmentPlace.content)
    do {
      let file = try createFile(incoming)
      if try download(file) { return try move(incoming, to: content, .keep) }
      _ = try createFile(content)
      try discard(incoming)
    } catch {
      try removeAttachmentDirectory(path)
      throw error
    }
  }

  /// Makes the directory of a consumer.
  package func prepare(_ consumer: String) throws {
    try makeParts()
    try makeDirectory(Self.taken + "/" + consumer)
  }

  /// Returns the consumers of a queue on etcd that have a directory here.
  package func etcdConsumers() throws -> [String] {
    try (list(Self.taken) ?? []).map(\.name.text).filter { $0.hasPrefix(Self.etcdPrefix) }
  }

  /// Removes the directory of a consumer of a queue on etcd.
  ///
  /// - Parameter withFiles: whether also one with files is removed; otherwise it stays.
  package func removeEtcdConsumer(_ consumer: String, withFiles: Bool) throws {
    let path = Self.taken + "/" + consumer
    guard try withFiles || list(path)?.isEmpty ?? true else { return }
    for entry in try list(path) ?? [] {
      try removeAttachmentDirectory(path + "/" + entry.name.text)
    }
    _ = try ifPresent(removeEmpty(path))
  }
}
