public import Foundation
import WormholeFiles

// Foundation on Linux always fails in an accessor, and elsewhere removes the original first. These
// are preferred to its own: they have no default parameters, a string as name, or an option list.
extension FileManager {
  /// Replaces an item with another in one step, with the other's mode; see the other form.
  @discardableResult
  public func replaceItemAt(_ originalItemURL: URL, withItemAt newItemURL: URL) throws -> URL? {
    try replaceItemAt(originalItemURL, withItemAt: newItemURL, options: [])
  }

  /// Replaces an item with another in one step. In an accessor, the item is the URL that it gets.
  ///
  /// - Parameters:
  ///   - originalItemURL: need not exist; a link stands for its target.
  ///   - newItemURL: is gone afterwards.
  ///   - options: `usingNewMetadataOnly`: the new item keeps its own mode.
  /// - Returns: the URL of the original.
  /// - Throws: a Foundation or `FileCoordinator` error; the original is then intact, or replaced.
  @discardableResult
  public func replaceItemAt(
    _ originalItemURL: URL, withItemAt newItemURL: URL, options: ItemReplacementOptions
  ) throws -> URL? {
    let (original, new) = (originalItemURL.path, newItemURL.path)
    // A link stands for its target; its own mode means nothing.
    let target = originalItemURL.resolvingSymlinksInPath().path
    if !options.contains(.usingNewMetadataOnly), fileExists(atPath: target) {
      let (old, own) = (try attributesOfItem(atPath: target), try attributesOfItem(atPath: new))
      let kinds = [old, own].map { $0[.type] as? FileAttributeType }
      if let mode = old[.posixPermissions], kinds[0] == kinds[1], kinds[1] != .typeSymbolicLink {
        try setAttributes([.posixPermissions: mode], ofItemAtPath: new)
      }
    }
    if let left = try KeptCopies.put(new, at: original, isCopied: false) {
      try removeItem(atPath: left)
    }
    return originalItemURL
  }

  /// Replaces an item with another in one step; see the form with options.
  @discardableResult
  public func replaceItemAt(
    _ originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String?
  ) throws -> URL? {
    try replace(originalItemURL, with: newItemURL, backupItemName, [])
  }

  /// Replaces an item with another in one step, after making a copy of the original.
  ///
  /// - Parameters:
  ///   - originalItemURL: see the form without a backup.
  ///   - newItemURL: is gone afterwards.
  ///   - backupItemName: the copy's name, beside the item. It replaces an earlier copy.
  ///   - options: `withoutDeletingBackupItem` keeps the copy; otherwise it is removed at the end.
  /// - Returns: the URL of the original.
  /// - Throws: as the form without a backup. The copy then stays.
  @discardableResult
  public func replaceItemAt(
    _ originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String,
    options: ItemReplacementOptions
  ) throws -> URL? {
    try replace(originalItemURL, with: newItemURL, backupItemName, options)
  }

  /// Replaces an item with another in one step; see the form with a backup's name. This one gets
  /// options written as a list.
  @discardableResult
  public func replaceItemAt(
    _ originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String?,
    options: [ItemReplacementOptions]
  ) throws -> URL? {
    try replace(
      originalItemURL, with: newItemURL, backupItemName, ItemReplacementOptions(options))
  }

  private func replace(
    _ original: URL, with new: URL, _ backupName: String?, _ options: ItemReplacementOptions
  ) throws -> URL? {
    guard let backupName, fileExists(atPath: original.path) else {
      return try replaceItemAt(original, withItemAt: new, options: options)
    }
    // Anything beside an accessor's copy is gone after the access.
    let item = FileCoordinator.place(ofCopy: original.path).map { URL(fileURLWithPath: $0) }
    let backup = (item ?? original).deletingLastPathComponent().appendingPathComponent(backupName)
    if fileExists(atPath: backup.path) { try removeItem(at: backup) }
    try copyItem(at: original, to: backup)
    let place = try replaceItemAt(original, withItemAt: new, options: options)
    if !options.contains(.withoutDeletingBackupItem) { try removeItem(at: backup) }
    return place
  }
}
