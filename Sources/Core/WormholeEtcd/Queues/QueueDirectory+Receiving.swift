import Wormhole
package import WormholeSystem

// The files that came through etcd to this machine.
extension QueueDirectory {
  /// How the directories of consumers begin that belong to a queue on etcd.
  package static let etcdPrefix = "etcd-"

  /// Puts a file that came through etcd where a consumer's attachments lie, unless it lies there already.
  ///
  /// - Parameters:
  ///   - isClaimed: whether it was claimed: then nothing but its directory is made.
  ///   - parts: What was written before; of this one, if etcd cannot be reached in the middle.
  ///   - download: Writes the content, from the beginning that is there, and returns whether it is what
  ///     was sent; damaged content becomes an empty file, whose size is not what its entry says.
  package func receive(
    _ id: String, by consumer: String, isClaimed: Bool, parts: FetchedParts,
    _ download: (_ file: borrowing FileDescriptor, _ part: SharedDescriptor?) throws -> Bool
  ) throws {
    try prepare(consumer)
    let path = AttachmentPlace.takenPath(id, by: consumer)
    guard try !exists(path) else { return }
    try makeDirectory(path)
    guard !isClaimed else { return }
    let (incoming, content) = (path + "/" + Self.incoming, path + "/" + AttachmentPlace.content)
    do {
      let file = try createFile(incoming)
      if try download(file, parts.take(id)) { return try move(incoming, to: content, .keep) }
      _ = try createFile(content)
      try discard(incoming)
    } catch {
      // What the disk refuses is not kept on it, and what cannot be kept is fetched again.
      if error is EtcdError { try? keep(in: consumer, parts) }
      try removeAttachmentDirectory(path)
      throw error
    }
  }

  /// A file that came through etcd, until it is whole.
  private static let incoming = "incoming"

  /// Keeps what a consumer has written of files that are not whole.
  package func keep(in consumer: String, _ parts: FetchedParts) throws(Errno) {
    for entry in try list(Self.taken + "/" + consumer) ?? [] {
      let name = entry.name.text
      guard name.hasPrefix(AttachmentPlace.takenPrefix) else { continue }
      let path = "\(Self.taken)/\(consumer)/\(name)/\(Self.incoming)"
      guard let file = try ifPresent(openFile(path, [.readOnly, .nonBlocking])),
        try file.status().kind == .regular
      else { continue }
      parts.keep(String(name.dropFirst(AttachmentPlace.takenPrefix.count)), file)
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
