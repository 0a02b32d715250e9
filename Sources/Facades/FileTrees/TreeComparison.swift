package import SystemCalls

extension TreeManifest.Entry {
  /// Whether the entry is as it was.
  ///
  /// Of a directory only owner and mode count, because its entries are compared themselves. A second
  /// name of a file changes the time of its last change, too, so that time counts only when the file
  /// has as many names as before.
  package func isUnchanged(since base: TreeManifest.Entry) -> Bool {
    guard kind == base.kind, permissions == base.permissions, owner == base.owner,
      group == base.group
    else { return false }
    if kind == .directory { return true }
    return inode == base.inode && device == base.device && size == base.size
      && modified == base.modified && target == base.target
      && (changed == base.changed || links != base.links)
  }
}

extension FileStatus {
  /// Whether the file is as it was; a directory is when it has the same owner and mode.
  package func isUnchanged(since base: FileStatus) -> Bool {
    TreeManifest.Entry(self).isUnchanged(since: TreeManifest.Entry(base))
  }
}

extension TreeManifest {
  /// Whether the item and everything below it is as it was; also when there is no item, as before.
  package func isUnchanged(since base: TreeManifest) -> Bool {
    changes(since: base, atMost: 1).isEmpty
  }

  /// The entries that are not as they were: changed, added or removed. Of a directory that was added or
  /// removed only the directory itself is listed; the path of the item itself is empty.
  package func changes(since base: TreeManifest, atMost limit: Int) -> [TreePath] {
    guard let root, let baseRoot = base.root else {
      return root == nil && base.root == nil ? [] : [TreePath()]
    }
    var changes: [TreePath] = []
    if !entries[root].isUnchanged(since: base.entries[baseRoot]) { changes.append(TreePath()) }
    // Directories then and now. A path is made only for these and for changes: most entries are neither.
    var waiting = [(path: TreePath(), now: root, then: baseRoot)]
    while changes.count < limit, let (path, index, baseIndex) = waiting.popLast() {
      guard [entries[index].kind, base.entries[baseIndex].kind] == [.directory, .directory] else {
        continue
      }
      var (left, baseLeft) = (children(of: index), base.children(of: baseIndex))
      while changes.count < limit, let difference = compareFirst(left, base, baseLeft) {
        let (now, then) = (left.first.map(Int.init), baseLeft.first.map(Int.init))
        if difference <= 0 { left.removeFirst() }
        if difference >= 0 { baseLeft.removeFirst() }
        switch (difference <= 0 ? now : nil, difference >= 0 ? then : nil) {
        case (let now?, let then?):
          if !entries[now].isUnchanged(since: base.entries[then]) {
            changes.append(path.appending(name(of: now)))
          }
          if entries[now].kind == .directory {
            waiting.append((path.appending(name(of: now)), now, then))
          }
        case (let now?, nil): changes.append(path.appending(name(of: now)))
        case (nil, let then?): changes.append(path.appending(base.name(of: then)))
        case (nil, nil): break
        }
      }
    }
    return changes
  }

  /// Which of the first of two sorted lists comes first: below zero for this manifest's, zero when both
  /// have the same name, nil when both lists are empty.
  private func compareFirst(
    _ children: ArraySlice<UInt32>, _ base: TreeManifest, _ baseChildren: ArraySlice<UInt32>
  ) -> Int? {
    guard let child = children.first else { return baseChildren.isEmpty ? nil : 1 }
    guard let baseChild = baseChildren.first else { return -1 }
    return Self.compareNames(self, Int(child), base, Int(baseChild))
  }
}
