import SystemCalls

extension TreeManifest.Entry {
  /// Whether nobody changed it since.
  ///
  /// A directory is changed by another owner or mode only: its entries tell for themselves. A second
  /// name of a file changes the time of its last change, too, so that time counts only when there are
  /// as many names as before.
  func isUnchanged(since base: TreeManifest.Entry) -> Bool {
    guard kind == base.kind, hasSameMetadata(as: base) else { return false }
    if kind == .directory { return true }
    return isSameFile(as: base) && size == base.size && modified == base.modified
      && target == base.target && (changed == base.changed || links != base.links)
  }

  func isSameFile(as other: TreeManifest.Entry) -> Bool {
    inode == other.inode && device == other.device
  }

  /// Owner and mode.
  func hasSameMetadata(as other: TreeManifest.Entry) -> Bool {
    permissions == other.permissions && owner == other.owner && group == other.group
  }

  /// Whether both are the same to a reader, as far as that is known without reading.
  func isEquivalent(to other: TreeManifest.Entry) -> Bool {
    guard kind == other.kind else { return false }
    switch kind {
    case .symbolicLink: return target == other.target
    case .fifo: return hasSameMetadata(as: other)
    case .regular, .socket, .device, .directory: return isSameFile(as: other)
    }
  }
}

extension FileStatus {
  /// Whether nobody changed the file since; of a directory, whether it has the same owner and mode.
  func isUnchanged(since base: FileStatus) -> Bool {
    TreeManifest.Entry(self).isUnchanged(since: TreeManifest.Entry(base))
  }
}

extension TreeManifest {
  /// Whether nobody changed the item or anything below it since; also when there is none, as then.
  func isUnchanged(since base: TreeManifest) -> Bool {
    isUnchanged(at: root, since: base, at: base.root)
  }

  /// The same of a part of the item.
  func isUnchanged(at index: Int?, since base: TreeManifest, at baseIndex: Int?) -> Bool {
    guard let index, let baseIndex else { return index == nil && baseIndex == nil }
    var waiting = [(index, baseIndex)]
    while let (index, baseIndex) = waiting.popLast() {
      guard entries[index].isUnchanged(since: base.entries[baseIndex]) else { return false }
      let (now, then) = (children(of: index), base.children(of: baseIndex))
      guard now.count == then.count else { return false }
      for (now, then) in zip(now, then) {
        guard Self.compareNames(self, Int(now), base, Int(then)) == 0 else { return false }
        waiting.append((Int(now), Int(then)))
      }
    }
    return true
  }
}
