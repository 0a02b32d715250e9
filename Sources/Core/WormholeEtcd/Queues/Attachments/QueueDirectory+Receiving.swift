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
  ///   - isMovedAway: whether its receiver has it: then only its directory is created.
  ///   - download: Writes the content, and returns whether it is as it was sent; damaged content
  ///     becomes an empty file, whose size differs from its entry.
  func receive(
    _ id: String, by consumer: String, isMovedAway: Bool,
    _ download: (_ file: borrowing FileDescriptor) throws -> Bool
  ) throws {
    try prepare(consumer)
    let path = AttachmentLayout.takenPath(id, by: consumer)
    guard try !exists(path) else { return }
    try makeDirectory(path)
    guard !isMovedAway else { return }
    let (incoming, content) = (path + "/incoming", path + "/" + AttachmentLayout.content)
    do {
      let file = try createFile(incoming)
      if try download(file) { return try move(incoming, to: content, .keep) }
      _ = try createFile(content)
      try discard(incoming)
    } catch {
      // It is fetched again.
      try removeAttachmentDirectory(path)
      throw error
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

  /// - Parameter withFiles: whether even a directory with files is removed; otherwise it stays.
  func removeEtcdConsumer(_ consumer: String, withFiles: Bool) throws {
    let path = Self.taken + "/" + consumer
    guard try withFiles || list(path)?.isEmpty ?? true else { return }
    for entry in try list(path) ?? [] {
      try removeAttachmentDirectory(path + "/" + entry.name.text)
    }
    _ = try ifPresent(removeDirectory(path, at: descriptor.rawValue))
  }
}
