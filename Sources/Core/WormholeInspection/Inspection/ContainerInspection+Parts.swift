import Wormhole
import WormholeSystem

/// The walk through the directory of a name, by the rows that describe it.
extension ContainerInspection {
  struct Owner: Sendable {
    let kind: NameKind
    let identifier: String
    /// Its directory, relative to the container.
    let path: String
  }

  /// An entry that a row describes.
  struct Found {
    let part: ContainerPart
    let name: FileName
    let isDirectory: Bool?
    let path: String
    let owner: Owner
  }

  /// Counts entries that only one primitive has.
  ///
  /// - Returns: Whether the entry needs no further handling.
  typealias Count = (inout ContainerInspection, Found) -> Bool

  func title(of owner: Owner) -> String? { scope.use(owner.identifier, owner.kind)?.title }

  /// Looks at all parts of a name, in the order of their rows.
  mutating func lookAtParts(of owner: Owner, _ count: Count = { _, _ in false }) {
    let parts = container.root.parts(of: owner.kind.primitive)
    let entries = list(owner.path).map { entry in
      (entry, row: parts.firstIndex { $0.isNamed(entry.name) })
    }
    for row in parts.indices.map({ Optional($0) }) + [nil] {
      for (entry, _) in entries.filter({ $0.row == row }) {
        look(at: entry, row.map { parts[$0] }, in: owner.path, of: owner, count)
      }
    }
  }

  /// Looks at all entries of a directory, however many there are, as long as there is time.
  private mutating func look(
    at parts: [ContainerPart], in path: String, of owner: Owner, _ count: Count
  ) {
    forEach(in: path) { inspection, entries in
      for entry in entries {
        let part = parts.first { $0.isNamed(entry.name) }
        inspection.look(at: entry, part, in: path, of: owner, count)
      }
      return inspection.mayRead(0)
    }
  }

  private mutating func look(
    at entry: FileDescriptor.Entry, _ part: ContainerPart?, in path: String, of owner: Owner,
    _ count: Count
  ) {
    let path = path + "/" + entry.name.text
    guard let part else { return addForeign(path) }
    let found = Found(
      part: part, name: entry.name, isDirectory: entry.isDirectory, path: path, owner: owner)
    if !count(&self, found) { look(at: found, count) }
  }

  private mutating func look(at found: Found, _ count: Count) {
    let (path, owner) = (found.path, found.owner)
    switch found.part.role {
    case .lease:
      look(at: found.part.parts ?? [], in: path, of: owner) {
        $0.lookAtLease($1)
        return true
      }
    case .consumer where found.isDirectory == false: addForeign(path)
    case .unfinished:
      guard let status = status(path) else { return }
      let isAbandoned =
        status.kind == .regular ? !isBeingWritten(status, path) : isStale(path)
      if isAbandoned { add(.abandonedEntry, path, of: owner) }
    case .forgotten:
      if status(String(path.dropLast(QueueDirectory.forgottenSuffix.count))) == nil {
        add(.abandonedEntry, path, of: owner)
      }
    case .mark: lookAtMark(found)
    case .attachment: lookAtAttachment(found)
    default:
      if let parts = found.part.parts { look(at: parts, in: path, of: owner, count) }
    }
  }

  private mutating func lookAtMark(_ found: Found) {
    guard let id = OutcomeFile.id(found.name.text), let file = status(found.path),
      id.files.allSatisfy({
        status(found.owner.path + "/" + QueueDirectory.pendingPath($0)) == nil
      })
    else { return }
    if !isBeingWritten(file, found.path) { add(.abandonedEntry, found.path, of: found.owner) }
  }

  private mutating func lookAtAttachment(_ found: Found) {
    guard let status = status(found.path), status.kind == .directory else {
      return addForeign(found.path)
    }
    // A complete file belongs to its sender, which may come back, so it is not a leftover.
    let isWhole = self.status(found.path + "/" + AttachmentLayout.content) != nil
    if !isWhole, !isBeingWritten(status, found.path) {
      add(.abandonedEntry, found.path, of: found.owner)
    }
  }

  /// Returns whether a file is being written; its writer keeps it locked as long as it lives. The kernel's
  /// list does not show a writer in another namespace, which is reported as dead, but not swept.
  func isBeingWritten(_ status: FileStatus, _ path: String) -> Bool {
    locks.map { !$0.holders(of: status).isEmpty } ?? !isStale(path)
  }
}
