import Wormhole
import WormholeSystem
import WormholeToolkit

/// The copies of accesses to an item that were refused because others had changed it, or had it
/// until the deadline: beside the item, as `<name>.conflict-<nonce>`, and `<name>.resolved-<nonce>`
/// once a user has resolved the conflict.
package struct KeptCopies: Sendable {
  package struct Copy: Sendable {
    package fileprivate(set) var path: String
    package let nonce: String
    package fileprivate(set) var isResolved: Bool
  }

  /// What happened to a copy. Other processes' presenters read it by name.
  package enum Event: String, Sendable {
    case gained, lost, resolved
  }

  let item: ItemPath
  package var path: String { item.text }

  private static let conflict = ".conflict-"
  private static let resolved = ".resolved-"

  package init(of path: String) {
    // If a directory above may not be looked at, the path as written is still the place.
    let place = (try? ItemPath.canonical(path, followingLink: true)) ?? ItemPath(path)
    item = ItemSite.itemOfCopy(at: place) ?? place
  }

  init(item: ItemPath) { self.item = item }

  func newPath() -> String { path(Self.conflict + Nonce.next()) }

  private func path(_ ending: String) -> String {
    item.parent.appending(FileName(item.name(ending: ending))).text
  }

  /// Returns the copies, the oldest first; nil if the directory cannot be read.
  package func all() -> [Copy]? {
    let entries = Diagnostics.reporting(otherwise: nil) {
      try reporting("list the versions", path: path) {
        try FileDescriptor.open(item.parent.text, [.readOnly, .directory]).entries()
      }
    }
    return entries?.compactMap { copy($0.name.text) }
      .map {
        ($0, statusIfVisible($0.path).map { [$0.changedSeconds, $0.changedNanoseconds] } ?? [])
      }
      .sorted { ($0.1 + [0, 0]).lexicographicallyPrecedes($1.1 + [0, 0]) }.map(\.0)
  }

  /// - Returns: nil if the name is not that of one of the item's copies.
  func copy(_ name: String) -> Copy? {
    for (ending, isResolved) in [(Self.conflict, false), (Self.resolved, true)] {
      // By bytes, because names that Unicode calls equivalent are two different files.
      let beginning = (item.name.text + ending).utf8
      guard name.utf8.starts(with: beginning) else { continue }
      let nonce = String(decoding: name.utf8.dropFirst(beginning.count), as: UTF8.self)
      // Otherwise it is one of the user's files.
      guard Nonce.isOne(nonce) else { continue }
      return Copy(
        path: item.parent.appending(FileName(name)).text, nonce: nonce, isResolved: isResolved)
    }
    return nil
  }

  /// Puts an item, or a copy of it, in the place of another in one step. A symbolic link there
  /// stands for its target.
  ///
  /// - Returns: The path of the old item if it is left: a file replaces a file, and any other pair
  ///   changes places.
  /// - Throws: `WormholeError`; both are then as they were.
  package static func put(_ new: String, at place: String, isCopied: Bool) throws -> String? {
    try reporting("replace the item", path: place) {
      let target = try ItemPath.canonical(place, followingLink: true)
      if !isCopied, let left = try tolerating([.crossesDevices], put(ItemPath(new), at: target)) {
        return left
      }
      let parent = try target.openParent()
      let copy = FileName(".replacing-" + Nonce.next())
      do {
        try TreeCopy().copy(FileName(new), at: Directory.current, to: copy, at: parent.rawValue)
        let left = try put(target.parent.appending(copy), at: target)
        if !isCopied {
          let source = ItemPath(new)
          // Open until the end: by then, a number alone may be another file's.
          let home = try source.openParent()
          try TreeRemoval().remove(source.name, at: home.rawValue)
        }
        return left
      } catch {
        // The error that is thrown names the problem.
        try? TreeRemoval().remove(copy, at: parent.rawValue)
        throw error
      }
    }
  }

  private static func put(_ new: ItemPath, at place: ItemPath) throws(Errno) -> String? {
    let old = try place.status()
    let isFile = try new.status()?.kind != .directory
    let isFileForFile = isFile && old?.kind != .directory
    let mode: RenameMode = old == nil ? .keep : isFileForFile ? .replace : .exchange
    let here = Directory.current
    try rename(new.text, at: here, to: place.text, at: here, mode)
    return mode == .exchange ? new.text : nil
  }

  /// Renames a copy, so that all processes know that its conflict is resolved.
  ///
  /// - Returns: whether it was not resolved before, and is now.
  package func resolve(_ changed: inout Copy?) -> Bool {
    guard var copy = changed, !copy.isResolved else { return false }
    let new = path(Self.resolved + copy.nonce)
    return Diagnostics.reporting(otherwise: false) {
      try reporting("resolve the conflict", path: copy.path) {
        try rename(copy.path, at: Directory.current, to: new, at: Directory.current)
      }
      copy.path = new
      copy.isResolved = true
      changed = copy
      return true
    }
  }
}
