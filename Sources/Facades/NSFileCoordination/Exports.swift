// On Apple's systems these names are Foundation's, so code that used them imports that.
@_exported public import Foundation
import Wormhole

// The members of these are named without their types: `options: .forDeleting`.
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
  /// Does nothing: Linux has no sandbox that a URL would open; the file's mode decides.
  ///
  /// - Returns: true, as the original where no sandbox forbids the access.
  public func startAccessingSecurityScopedResource() -> Bool { true }

  /// Does nothing.
  public func stopAccessingSecurityScopedResource() {}
}

extension FileManager {
  /// Returns the directory of a group's container, and makes it at its first use.
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
