package import Wormhole
import WormholePropertyLists
import WormholeSystem

/// A container as one stream of bytes, and back.
///
/// The stream is a tar archive (pax), so that tar(1) lists and unpacks it:
///
/// | member | content |
/// |---|---|
/// | `backup.plist` | the version of this form, 1, and the date |
/// | `container/…` | the copy that `ContainerCopy` makes: the format on disk |
/// | `end.plist` | the number of members before it, and the XXH64 of all bytes before it, in hex |
///
/// A stream without the last member, or with another hash, is not restored. Later versions may have
/// further members between these and further keys, which are ignored; a form that an old reader
/// must not read has a higher version.
package struct ContainerBackup {
  fileprivate static let version: Int64 = 1
  fileprivate static let head = "backup.plist"
  fileprivate static let tree = "container"
  fileprivate static let end = "end.plist"
  fileprivate static let maximumRecord: Int64 = 64 << 10
  /// The largest number of members: each becomes a file, or is at least read.
  fileprivate static let maximumMembers: Int64 = 50_000_000

  /// The copy that becomes `container/…`; its progress and its check are also those of the rest.
  package var copy: ContainerCopy

  package init(of source: SharedContainer) {
    copy = ContainerCopy(of: source)
    copy.allowsUse = true
    copy.isDurable = false
  }

  package struct Summary: Sendable {
    package let members: Int
    package let bytes: Int
    /// What was left out, because it cannot be read.
    package let faults: NameFaults
  }

  /// Writes the container as it was at one moment; processes may continue to use it.
  ///
  /// - Parameters:
  ///   - directory: The place of a copy during the call, under a name that begins with
  ///     `.wormhole-backup-`.
  ///   - deadline: Checked between all steps.
  ///   - write: Gets the bytes, piece by piece. If an error is thrown, the bytes are not whole, and
  ///     every reader detects that.
  /// - Throws: `AppGroupError`, as `ContainerCopy.run`; the error of `write`.
  package func run(
    stagedIn directory: String, until deadline: ContinuousClock.Instant,
    to write: @escaping ([UInt8]) throws -> Void
  ) throws -> Summary {
    let staging = try StagedDirectory(
      directory + "/.wormhole-backup-" + Nonce.next(), "back up the container")
    defer { staging.remove() }
    var copy = copy
    copy.deadline = deadline
    let copied = try copy.run(to: staging.path + "/" + Self.tree, until: deadline)
    let writer = TarWriter(to: write) { [copy] entries, bytes in
      try copy.checkAll()
      copy.progress(entries, bytes)
    }
    try reporting("back up the container", path: copy.source.location) {
      try put(["version": .integer(Self.version), "date": .now], as: Self.head, writer)
      var packing = TreePacking(writer: writer)
      try packing.run(FileName(Self.tree), at: staging.root.descriptor.rawValue)
      let hash = String(writer.hashValue, radix: 16)
      try put(
        ["entries": .integer(Int64(writer.entries)), "hash": .string(hash)], as: Self.end, writer)
      try writer.finish()
    }
    return Summary(members: writer.entries, bytes: writer.bytes, faults: copied.faults)
  }

  private func put(_ record: PropertyListValue, as name: String, _ writer: TarWriter) throws {
    let content = Array(try record.xmlData())
    try writer.put(
      TarEntry(
        path: Array(name.utf8), kind: .file, permissions: 0o600, size: Int64(content.count),
        seconds: realTime().seconds),
      content: content)
  }

  // MARK: Restoring

  /// Creates a container from a stream: complete, or not at all.
  ///
  /// - Parameters:
  ///   - name: The name of the stream, for error sentences.
  ///   - location: A directory that does not exist or is empty, or a place on etcd without a container.
  ///   - group: The group whose container it becomes; nil for none.
  ///   - directory: The place of a copy during the call, if the container will be on etcd; for a
  ///     directory the copy is beside it. Its name contains `.wormhole-restore-`.
  ///   - check: Called between all steps; its errors end the work.
  ///   - read: Returns at most the requested number of next bytes, and none at the end.
  /// - Throws: `AppGroupError`: `damaged` for anything but a whole stream; `formatTooNew`; otherwise as
  ///   `ContainerCopy.run`; the error of `read`.
  package static func restore(
    _ name: String, to location: String, group: String?, stagedIn directory: String,
    until deadline: ContinuousClock.Instant, check: @escaping () throws -> Void = {},
    from read: @escaping (_ maximum: Int) throws -> [UInt8]
  ) throws -> ContainerCopy.Summary {
    var beside = directory
    if !Engines.isMeant(by: location) {
      beside = parentDirectory(of: try SharedContainer.absolute(location))
      try ContainerLocation.create(beside)
    }
    let staging = try StagedDirectory(
      beside + "/.wormhole-restore-" + Nonce.next(), "restore the container")
    defer { staging.remove() }
    let reader = TarReader(from: read)
    do {
      try reporting("restore the container", path: staging.path) {
        try unpack(reader, name, at: staging.root)
      }
    } catch let error as TarEntry.Malformed {
      throw damaged(name, "\(error.reason), before byte \(reader.position)")
    }
    guard let container = try SharedContainer.existing(location: staging.path + "/" + tree) else {
      throw damaged(name, "it has no container")
    }
    var copy = ContainerCopy(of: container)
    copy.allowsUse = true
    copy.isStill = true
    copy.check = check
    return try copy.run(to: location, group: group, until: deadline)
  }

  private static func damaged(_ name: String, _ reason: String) -> AppGroupError {
    AppGroupError(
      .damaged, "restore the container", path: name, reason: "the backup is damaged: \(reason)")
  }

  private static func unpack(
    _ reader: TarReader, _ name: String, at root: SharedDescriptor
  ) throws {
    guard let first = try reader.next(), first.path.elementsEqual(head.utf8) else {
      throw TarEntry.Malformed("it does not begin with \(head)")
    }
    guard let version = try record(first, reader)["version"]?.int64Value, version > 0 else {
      throw TarEntry.Malformed("\(head) has no version")
    }
    guard version <= Self.version else {
      throw AppGroupError(
        .formatTooNew, "restore the container", path: name,
        reason: "the backup has the form \(version), and this program knows \(Self.version)",
        remedy: "use a newer one")
    }
    let unpacking = TreeUnpacking(at: root)
    var entries: Int64 = 1
    while let entry = try reader.next() {
      if entry.path.elementsEqual(end.utf8) {
        let hash = String(reader.hashBefore, radix: 16)
        let record = try record(entry, reader)
        guard record["entries"]?.int64Value == entries, record["hash"]?.stringValue == hash else {
          throw TarEntry.Malformed("its bytes are not those that were written")
        }
        try reader.finish()
        return try unpacking.finish()
      }
      guard entries < maximumMembers else { throw TarEntry.Malformed("it has too many members") }
      if entry.path.elementsEqual(tree.utf8) || entry.path.starts(with: (tree + "/").utf8) {
        try unpacking.make(entry, contentOf: reader)
      } else {
        try reader.content(of: entry) { _ in }
      }
      entries += 1
    }
    throw TarEntry.Malformed("it ends without \(end)")
  }

  private static func record(_ entry: TarEntry, _ reader: TarReader) throws -> PropertyListValue {
    let bytes = try reader.content(of: entry, maximumBytes: maximumRecord)
    do throws(PropertyListError) {
      return try PropertyListValue(bytes: bytes)
    } catch {
      throw TarEntry.Malformed("a record cannot be read: \(error.reason)")
    }
  }
}
