public import Foundation
import WormholeFiles

// Foundation on Linux always fails in an accessor, and elsewhere removes the original first. These are
// preferred to its own, because they have no parameters by default.
extension FileManager {
  /// Puts an item in the place of another in one step, with the mode of that one; see the other form.
  @discardableResult
  public func replaceItemAt(_ originalItemURL: URL, withItemAt newItemURL: URL) throws -> URL? {
    try replaceItemAt(originalItemURL, withItemAt: newItemURL, options: [])
  }

  /// Puts an item in the place of another in one step. In an accessor that is the URL that it gets.
  ///
  /// - Parameters:
  ///   - originalItemURL: need not exist; a link stands for its target.
  ///   - newItemURL: is gone afterwards.
  ///   - options: `usingNewMetadataOnly`: the new item keeps its own mode.
  /// - Returns: the URL of the original.
  /// - Throws: an error of Foundation or of `FileCoordinator`; then the original is as it was, or replaced.
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
}
