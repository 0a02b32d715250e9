import AppGroup
import SystemCalls

/// The private copy of an item in a claim: made when access was granted, looked at when the accessor
/// has returned.
struct StagedCopy: Sendable {
  /// What the accessor left.
  enum Change: Sendable, Equatable {
    /// Everything is as it was.
    case none
    case replaced(FileStatus)
    case removed
  }

  private let copying: ItemDemand.Copying
  /// What the item was when it was copied; nil when there was nothing.
  private let item: FileStatus?
  /// What the copy was when it was made; nil when there was none.
  private let original: FileStatus?
  private let trees: StagedTrees?

  /// An item that changes while it is copied is copied again, but not for ever.
  private static let attempts = 4

  /// Makes the copy.
  ///
  /// - Parameter check: called in between; what it throws ends the copy.
  static func make(
    _ copying: ItemDemand.Copying, of location: ItemLocation, in claim: Claim,
    check: () throws -> Void
  ) throws -> StagedCopy {
    guard copying != .nothing else {
      return StagedCopy(copying: copying, item: nil, original: nil, trees: nil)
    }
    for attempt in 1...attempts {
      guard let before = try location.status() else {
        return StagedCopy(copying: copying, item: nil, original: nil, trees: nil)
      }
      guard [.regular, .directory, .symbolicLink].contains(before.kind) else {
        throw FileCoordinationError(
          .notAnItem, "copy the item", path: location.path,
          reason: "a \(before.kind) has no content that could be published",
          remedy: "use it without coordination")
      }
      let trees = before.kind == .directory ? try StagedTrees(of: location) : nil
      guard try copy(location, before.kind, to: claim, copying, check) else { continue }
      let after = try location.status()
      guard let copy = try status(in: claim) else { continue }
      // A directory is compared when it is published.
      let isSame = before.kind == .directory || after.map { $0.isUnchanged(since: before) } ?? false
      guard isSame || attempt == attempts else {
        try TreeRemoval().remove(FileName(location.name), at: claim.descriptor)
        continue
      }
      return StagedCopy(
        copying: copying, item: before, original: copy,
        trees: try trees?.withCopy(in: claim.descriptor))
    }
    return StagedCopy(copying: copying, item: nil, original: nil, trees: nil)
  }

  private static func copy(
    _ location: ItemLocation, _ kind: FileStatus.Kind, to claim: Claim,
    _ copying: ItemDemand.Copying, _ check: () throws -> Void
  ) throws -> Bool {
    let name = FileName(location.name)
    let mode: TreeCopy.Mode = copying == .names ? .link : .copy
    do {
      return try withoutActuallyEscaping(check) { check in
        guard kind == .directory else {
          // What a tree is made for costs a file some calls that it can do without.
          var entry = EntryCopy(
            mode: mode, check: check, dropsInherited: try claim.hasDefaultAccessList())
          return try entry.copy(
            FileName(location.path), at: Directory.current, to: name, at: claim.descriptor,
            path: TreePath(name))
        }
        let parent = try FileDescriptor.open(location.parent + "/", [.pathOnly, .directory])
        let copy = TreeCopy(
          mode: mode, leavesOut: { $0.hasPrefix(ItemSite.prefix) }, check: check,
          refusesMounts: true)
        _ = try copy.copy(name, at: parent.rawValue, to: name, at: claim.descriptor)
        return true
      }
    } catch let error as TreeError
      where [.refused(.noSuchFile), .refused(.isDirectory)].contains(error.reason)
      && error.path == TreePath(name)
    {
      // Removed meanwhile, or become another kind of file.
      return false
    }
  }

  private static func status(in claim: Claim) throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return try fileStatus(claim.site.location.name, at: claim.descriptor)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// What the accessor left.
  func change(in claim: Claim) throws -> Change {
    guard let now = try Self.status(in: claim) else {
      return original == nil ? .none : .removed
    }
    guard let original else { return .replaced(now) }
    guard now.kind == original.kind else { return .replaced(now) }
    if let trees {
      return try trees.isUnchanged(in: claim.descriptor) ? .none : .replaced(now)
    }
    return now.isUnchanged(since: original) ? .none : .replaced(now)
  }

  /// Whether the item is still what it was when it was copied. Where nothing was copied, nothing of it
  /// can be lost; and a directory's copy is published with what others did in it.
  func isCurrent(_ now: FileStatus?) -> Bool {
    if copying == .nothing || isMerged { return true }
    guard let item, let now else { return item == nil && now == nil }
    return now.isUnchanged(since: item)
  }

  /// What a copy is called that is not published and must not be lost.
  static func keptName(for name: String) -> String {
    let ending = ".conflict-" + Nonce.next()
    var name = name
    while name.utf8.count + ending.utf8.count > 255 { name.removeLast() }
    return name + ending
  }

  /// Whether what others did to the directory meanwhile has to be carried over before it is published.
  var isMerged: Bool { trees != nil && copying == .content }

  /// Carries over what others did to the directory since it was copied.
  ///
  /// - Throws: `conflict`.
  func merge(from location: ItemLocation, in claim: Claim) throws {
    guard isMerged, let trees else { return }
    try trees.merge(from: location, to: claim.descriptor)
  }
}
