import SystemCalls

/// What a directory and its private copy were when the copy was made, to tell what was changed since,
/// in which of both.
struct StagedTrees: Sendable {
  private let name: FileName
  private let item: TreeManifest
  private var copy: TreeManifest?

  /// Looks at a directory that is about to be copied.
  init(of location: ItemLocation) throws {
    name = FileName(location.name)
    item = try Self.manifest(of: location)
  }

  /// Looks at the copy that was made.
  func withCopy(in copies: Int32) throws -> StagedTrees {
    var trees = self
    trees.copy = try TreeManifest(of: name, at: copies)
    return trees
  }

  /// Whether the accessor changed nothing.
  func isUnchanged(in copies: Int32) throws -> Bool {
    guard let copy else { return false }
    return try TreeManifest(of: name, at: copies).isUnchanged(since: copy)
  }

  /// Carries over to the copy what others did in the directory since.
  ///
  /// - Throws: `conflict` when both changed the same entry in different ways; the copy is as it was.
  func merge(from location: ItemLocation, to copies: Int32) throws {
    guard let copy else { return }
    let itemNow = try Self.manifest(of: location)
    guard !itemNow.isUnchanged(since: item) else { return }
    let plan = TreeMergePlan(
      TreeMergeInput(
        itemBefore: item, stagedBefore: copy, itemNow: itemNow,
        stagedNow: try TreeManifest(of: name, at: copies)))
    switch plan {
    case .conflicts(let paths):
      let names = paths.prefix(3).map(\.text).joined(separator: ", ")
      let more = paths.count > 3 ? " and \(paths.count - 3) more" : ""
      throw FileCoordinationError(
        .conflict, "publish the directory", path: location.path,
        reason: "others changed \(names)\(more) in it while its copy was changed there, too; "
          + "nothing of the change is visible",
        remedy: "read the directory again and repeat the change")
    case .steps(let steps):
      let parent = SharedDescriptor(
        try FileDescriptor.open(location.parent + "/", [.readOnly, .directory]))
      let target = SharedDescriptor(
        try FileDescriptor.open(".", at: copies, [.readOnly, .directory]))
      try TreeMerge(leavesOut: Self.isSite).apply(
        steps, of: .init(name: name, directory: parent),
        to: .init(name: name, directory: target))
    }
  }

  private static func manifest(of location: ItemLocation) throws -> TreeManifest {
    let parent = try FileDescriptor.open(location.parent + "/", [.pathOnly, .directory])
    return try TreeManifest(
      of: FileName(location.name), at: parent.rawValue, leavingOut: isSite)
  }

  private static func isSite(_ name: FileName) -> Bool { name.hasPrefix(ItemSite.prefix) }
}
