import Synchronization
import Wormhole
import WormholeSystem

// The files that came through etcd to this machine.
extension QueueDirectory {
  /// The prefix of the directories of consumers of queues on etcd.
  static let etcdPrefix = "etcd-"

  /// Puts a file that came through etcd beside a consumer's attachments, unless it exists there.
  ///
  /// - Parameters:
  ///   - isClaimed: whether it was claimed: then only its directory is created.
  ///   - parts: The parts written before; this file's are added if etcd becomes unreachable.
  ///   - download: Writes the content after the existing beginning, and returns whether it is as it
  ///     was sent; damaged content becomes an empty file, whose size differs from its entry.
  func receive(
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
      // Content that the disk refuses is not kept on it, and is fetched again.
      if error is EtcdError { try? keep(in: consumer, parts) }
      try removeAttachmentDirectory(path)
      throw error
    }
  }

  /// A file that came through etcd, until it is whole.
  private static let incoming = "incoming"

  /// Keeps the written parts of a consumer's incomplete files.
  func keep(in consumer: String, _ parts: FetchedParts) throws(Errno) {
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

  func prepare(_ consumer: String) throws {
    try makeParts()
    try makeDirectory(Self.taken + "/" + consumer)
  }

  /// Returns the consumers of a queue on etcd that have a directory here.
  func etcdConsumers() throws -> [String] {
    try (list(Self.taken) ?? []).map(\.name.text).filter { $0.hasPrefix(Self.etcdPrefix) }
  }

  /// - Parameter withFiles: whether a directory with files is removed, too; otherwise it stays.
  func removeEtcdConsumer(_ consumer: String, withFiles: Bool) throws {
    let path = Self.taken + "/" + consumer
    guard try withFiles || list(path)?.isEmpty ?? true else { return }
    for entry in try list(path) ?? [] {
      try removeAttachmentDirectory(path + "/" + entry.name.text)
    }
    _ = try ifPresent(removeDirectory(path, at: descriptor.rawValue))
  }
}

/// The written parts of files that come through etcd, from before their consumer ended or etcd
/// became unreachable: open files without names. Each piece in them is compared before it is used.
final class FetchedParts: Sendable {
  private let files = Mutex<[String: SharedDescriptor]>([:])

  /// - Parameter file: What was fetched of an attachment, at its beginning.
  func keep(_ id: String, _ file: consuming FileDescriptor) {
    let file = SharedDescriptor(file)
    files.withLock { $0[id] = file }
  }

  /// Hands out the fetched parts of an attachment; nil if there are none.
  func take(_ id: String) -> SharedDescriptor? { files.withLock { $0.removeValue(forKey: id) } }
}
