import FileClaims
import FoundationEssentials

/// One item of a coordinated access, as its caller asked for it.
struct AccessRequest: Sendable {
  let path: String
  let kind: AccessKind
  /// Whether the accessor gets a copy of its own to read.
  private(set) var wantsSnapshot = false
  /// Whether the accessor gets the place itself where the caller may have named a link to it.
  private(set) var wantsRealPath = false
  /// Whether presenters are asked before.
  private(set) var asksPresenters = true
  /// The URL's scheme when it is none of the file system.
  private let scheme: String?

  private init(_ url: URL, _ kind: AccessKind) {
    path = url.path
    scheme = url.isFileURL ? nil : url.scheme
    self.kind = kind
  }

  static func reading(_ url: URL, _ options: ReadingOptions) -> AccessRequest {
    var request = AccessRequest(
      url, options.contains(.withoutChanges) ? .readingWithoutChanges : .reading)
    request.wantsSnapshot = options.contains(.forUploading)
    request.wantsRealPath = options.contains(.resolvesSymbolicLink)
    request.asksPresenters = !options.contains(.immediatelyAvailableMetadataOnly)
    return request
  }

  static func writing(_ url: URL, _ options: WritingOptions) -> AccessRequest {
    var request = AccessRequest(url, options.kind)
    request.wantsRealPath = true
    return request
  }

  /// The item itself, for programs that cannot work on a copy.
  static func locking(_ url: URL, isShared: Bool) -> AccessRequest {
    AccessRequest(url, isShared ? .sharing : .locking)
  }

  /// Finds the item.
  ///
  /// - Throws: as `ItemLocation.resolve`; `notAnItem` for what is on the web.
  func location() throws -> ItemLocation {
    guard let scheme else {
      return try ItemLocation.resolve(path, followingLink: kind.followsLink)
    }
    throw FileCoordinationError(
      .notAnItem, "find the item", path: path,
      reason: "its URL is none of a file, but of \(scheme):",
      remedy: "make it with URL(filePath:)")
  }

  /// The demand that presenters are asked about; nil when none is asked.
  func presenterDemand(at location: ItemLocation) -> PresenterDemand? {
    asksPresenters ? PresenterDemand(path: location.path, kind: kind) : nil
  }
}

extension WritingOptions {
  fileprivate var kind: AccessKind {
    let kinds: [(WritingOptions, AccessKind)] = [
      (.forDeleting, .deleting), (.forMoving, .moving), (.forReplacing, .replacing),
      (.contentIndependentMetadataOnly, .metadata), (.forMerging, .merging),
    ]
    return kinds.first { contains($0.0) }?.1 ?? .content
  }
}
