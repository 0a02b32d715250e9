public import Foundation

/// How much of an iCloud item is on this machine; no item on a Linux machine has a status.
///
/// ```swift
/// func isHere(_ url: URL) throws -> Bool {
///   let values = try url.resourceValues(forKeys: [.ubiquitousItemDownloadingStatusKey])
///   return values.ubiquitousItemDownloadingStatus != .notDownloaded
/// }
/// ```
public struct URLUbiquitousItemDownloadingStatus: RawRepresentable, Hashable, Sendable {
  /// The original's text.
  public let rawValue: String

  /// Creates a status.
  ///
  /// - Parameter rawValue: one of the original's texts.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The newest version is on this machine.
  public static let current = Self(rawValue: "NSURLUbiquitousItemDownloadingStatusCurrent")
  /// An older version is on this machine.
  public static let downloaded = Self(rawValue: "NSURLUbiquitousItemDownloadingStatusDownloaded")
  /// No version is on this machine.
  public static let notDownloaded = Self(
    rawValue: "NSURLUbiquitousItemDownloadingStatusNotDownloaded")
}

extension URLResourceValues {
  /// Returns nil, like the original for an item outside iCloud.
  public var ubiquitousItemDownloadingStatus: URLUbiquitousItemDownloadingStatus? { nil }
}

/// What code for the original asks before it coordinates a document, answered as on a machine whose
/// user is not signed in to iCloud. Every file is local.
extension FileManager {
  /// Returns nil: no user is signed in.
  public var ubiquityIdentityToken: (any NSCoding & NSCopying & NSObjectProtocol)? { nil }

  /// Returns nil: there are no iCloud containers.
  public func url(forUbiquityContainerIdentifier containerIdentifier: String?) -> URL? { nil }

  /// Returns false.
  public func isUbiquitousItem(at url: URL) -> Bool { false }

  /// Does nothing, because the item is already here.
  ///
  /// - Parameter url: the item's URL.
  /// - Throws: `CocoaError.fileReadNoSuchFile` if there is none.
  public func startDownloadingUbiquitousItem(at url: URL) throws {
    _ = try url.checkResourceIsReachable()
  }

  /// Leaves the item alone, because no cloud has another copy of it.
  ///
  /// - Parameter url: the item's URL.
  /// - Throws: `CocoaError.ubiquitousFileUnavailable`.
  public func evictUbiquitousItem(at url: URL) throws {
    throw Self.notInCloud(url)
  }

  /// Leaves the item in its place.
  ///
  /// - Parameters:
  ///   - flag: whether it is to be in iCloud.
  ///   - url: the item's URL.
  ///   - destinationURL: the URL to which it would move.
  /// - Throws: `CocoaError.ubiquitousFileUnavailable`.
  public func setUbiquitous(_ flag: Bool, itemAt url: URL, destinationURL: URL) throws {
    throw Self.notInCloud(url)
  }

  private static func notInCloud(_ url: URL) -> CocoaError {
    CocoaError(.ubiquitousFileUnavailable, userInfo: [NSURLErrorKey: url])
  }
}
