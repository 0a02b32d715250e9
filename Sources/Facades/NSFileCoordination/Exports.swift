// On Apple's systems Foundation declares these names, so code that uses them imports that.
@_exported public import Foundation
import Wormhole

// Their members are named without the types: `options: .forDeleting`.
@_exported public import struct WormholeFiles.ReadingOptions
@_exported public import struct WormholeFiles.WritingOptions

/// Where a method puts its error. Foundation on Linux lacks the name.
///
/// ```swift
/// func save(_ error: NSErrorPointer) {
///   error?.pointee = NSError(domain: "Cinema", code: 1)
/// }
/// var failure: NSError?
/// save(&failure)
/// ```
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

extension URL {
  /// Does nothing: Linux has no sandbox that a URL could open; the file's mode decides.
  ///
  /// - Returns: true, like the original if no sandbox forbids the access.
  public func startAccessingSecurityScopedResource() -> Bool { true }

  /// Does nothing.
  public func stopAccessingSecurityScopedResource() {}
}

extension FileManager {
  /// Returns the directory of a group's container, and makes it at the first use.
  ///
  /// - Parameter groupIdentifier: the App Group identifier.
  /// - Returns: nil if the identifier is invalid, or the container cannot be made; the reason is an
  ///   event of `Diagnostics`. Files beside the container's own entries are left alone.
  public func containerURL(
    forSecurityApplicationGroupIdentifier groupIdentifier: String
  ) -> URL? {
    Diagnostics.reporting(otherwise: nil) { try SharedContainer(group: groupIdentifier).url }
  }
}
