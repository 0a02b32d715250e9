public import Foundation
import Wormhole

extension FileManager {
  /// Returns the directory of a group's container, and makes it at its first use.
  ///
  /// - Parameter groupIdentifier: the App Group identifier.
  /// - Returns: nil if the identifier is invalid, or the container cannot be made; the reason is an
  ///   event of `Diagnostics`. Files beside the container's own entries are left alone.
  public func containerURL(
    forSecurityApplicationGroupIdentifier groupIdentifier: String
  ) -> URL? {
    do {
      return try SharedContainer(group: groupIdentifier).url
    } catch {
      Diagnostics.report(error)
      return nil
    }
  }
}
