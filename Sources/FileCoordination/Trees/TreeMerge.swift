import SystemCalls

/// Carries changes of an item over into its staged copy, as a plan says.
///
/// What the item has now is linked, not copied, where the system permits that: it stays the same file
/// to those who have it open. An entry of the item that has vanished since the plan was made is left
/// alone; a new look at the item shows it.
struct TreeMerge {
  /// An item or its staged copy: a name in an open directory.
  struct Side {
    let name: FileName
    let directory: SharedDescriptor
  }

  var leavesOut: (FileName) -> Bool = { _ in false }
  var check: () throws -> Void = {}

  /// - Throws: `TreeError`; the staged copy then has some of the changes. What `check` throws.
  func apply(_ steps: [TreeMergeStep], of item: Side, to staged: Side) throws {
    var itemPlaces = TreeMergePlaces(item)
    var stagedPlaces = TreeMergePlaces(staged)
    for step in steps {
      try check()
      switch step {
      case .remove(let path):
        guard let to = try stagedPlaces.holder(of: path) else { continue }
        try removal.remove(to.name, at: to.directory.descriptor.rawValue)
      case .put(let path):
        guard let from = try itemPlaces.holder(of: path) else { continue }
        guard let to = try stagedPlaces.holder(of: path) else {
          throw TreeError(action: "merge", path: path, reason: .refused(.noSuchFile))
        }
        try removal.remove(to.name, at: to.directory.descriptor.rawValue)
        try put(from, to)
      case .setMetadata(let path):
        guard let from = try itemPlaces.holder(of: path),
          let to = try stagedPlaces.holder(of: path)
        else { continue }
        try setMetadata(from, to, path)
      }
    }
  }

  private var removal: TreeRemoval { TreeRemoval(check: check) }

  private func put(_ from: Side, _ to: Side) throws {
    let copy = TreeCopy(mode: .link, leavesOut: leavesOut, check: check)
    do {
      _ = try copy.copy(
        from.name, at: from.directory.descriptor.rawValue, to: to.name,
        at: to.directory.descriptor.rawValue)
    } catch let error as TreeError {
      guard error.path == TreePath(from.name), error.reason == .refused(.noSuchFile) else {
        throw error
      }
    }
  }

  private func setMetadata(_ from: Side, _ to: Side, _ path: TreePath) throws {
    var entries = EntryCopy(mode: .link, check: check, dropsInherited: true)
    do throws(Errno) {
      let original = try openDirectory(from.name, at: from.directory.descriptor.rawValue)
      let copy = try openDirectory(to.name, at: to.directory.descriptor.rawValue)
      try entries.apply(try FileMetadata(of: original), to: copy)
    } catch {
      if error.isVanishing || error == .notDirectory { return }
      throw TreeError(action: "merge", path: path, reason: .refused(error))
    }
  }
}

/// Finds the directories that hold entries; the last one is kept, for steps come in the order of paths.
private struct TreeMergePlaces {
  private let side: TreeMerge.Side
  private var last: (path: ArraySlice<FileName>, directory: SharedDescriptor)?

  init(_ side: TreeMerge.Side) {
    self.side = side
  }

  /// Nil when the way there does not exist.
  mutating func holder(of path: TreePath) throws -> TreeMerge.Side? {
    let components = path.components
    guard let name = components.last else { return side }
    let parents = components.dropLast()
    if let last, last.path == parents {
      return TreeMerge.Side(name: name, directory: last.directory)
    }
    do throws(Errno) {
      var directory = SharedDescriptor(
        try openDirectory(side.name, at: side.directory.descriptor.rawValue))
      for parent in parents {
        directory = SharedDescriptor(
          try openDirectory(parent, at: directory.descriptor.rawValue))
      }
      last = (parents, directory)
      return TreeMerge.Side(name: name, directory: directory)
    } catch {
      if error.isVanishing || error == .notDirectory || error == .tooManyLinks { return nil }
      throw TreeError(action: "merge", path: path, reason: .refused(error))
    }
  }
}
