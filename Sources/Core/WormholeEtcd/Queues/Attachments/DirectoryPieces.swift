import Wormhole
import WormholeInspection
import WormholeSystem

/// The pieces in a directory that all machines share.
struct DirectoryPieces: FilePieces {
  private let files: String
  /// The queue's directory in it.
  private let queue: String

  init(_ files: String, of queue: EtcdQueue) {
    self.files = files
    self.queue = EncodedName(String(decoding: queue.prefix.dropLast(), as: UTF8.self)).component
  }

  var isInDirectory: Bool { true }

  /// Calls a closure with the directory; its errors name it.
  private func within<Result>(
    _ action: String, _ body: (borrowing FileDescriptor, FileStatus) throws -> Result
  ) throws -> Result {
    try reporting(action, path: files) {
      let directory = try FileDescriptor.open(files, [.readOnly, .directory])
      return try body(directory, directory.status())
    }
  }

  /// A full file system says so.
  func look() {}
  func makeRoom(_ bytes: Int, _ check: () throws -> Void) {}

  /// Without this, a file would count as damaged where the directory is not mounted. A queue's
  /// directory stays once it has had a piece.
  func confirm() throws {
    let isThere = try within("find the pieces of a file") { directory, _ in
      try exists(queue, at: directory.rawValue)
    }
    guard !isThere else { return }
    throw WormholeError(
      .notSupported, "find the pieces of a file", path: files,
      reason: "it has no piece of this queue",
      remedy: "mount the directory that files= names on its sender's machine; the file waits")
  }

  func put(_ piece: [UInt8], _ name: String) throws {
    try within("store a piece of a file") { directory, status in
      let content = queue + "/" + name.prefix { $0 != "/" }
      for path in [queue, content] {
        try tolerating(
          [.alreadyExists],
          makeDirectory(path, at: directory.rawValue, mode: status.permissions & 0o2777))
      }
      // Another sender of the same file may put it at the same time.
      let staged = content + "/.new-" + Nonce.next()
      let file = try FileDescriptor.openBeneath(
        staged, at: directory.rawValue, [.writeOnly, .create, .exclusive],
        mode: status.permissions & 0o666)
      try file.writeAll(piece)
      try file.synchronize()
      try rename(
        staged, at: directory.rawValue, to: queue + "/" + name, at: directory.rawValue)
    }
  }

  func read(_ name: String) throws -> [UInt8]? {
    try within("read a piece of a file") { directory, _ in
      try ifPresent(
        FileDescriptor.readBeneath(
          queue + "/" + name, at: directory.rawValue, maximumBytes: AttachmentManifest.piece
        ) { _ in true })
    }
  }

  func contents() throws -> Set<String> {
    try within("look for the pieces of files") { directory, _ in
      let found = try ifPresent(
        FileDescriptor.openBeneath(queue, at: directory.rawValue, [.readOnly, .directory])
          .entries())
      return Set((found ?? []).map(\.name.text).filter(AttachmentLayout.isID))
    }
  }

  func removal(of content: String) -> [EtcdTransaction.Operation] { [] }

  func discard(_ content: String) throws {
    try within("remove the pieces of a file") { directory, _ in
      let place = try ifPresent(
        FileDescriptor.openBeneath(queue, at: directory.rawValue, [.readOnly, .directory]))
      guard let place else { return }
      try TreeRemoval().remove(FileName(content), at: place.rawValue)
    }
  }
}
