import FoundationEssentials
import Wormhole
import WormholeSystem

/// One item of a coordinated access, as its caller asked for it.
struct AccessRequest: Sendable {
  let url: URL
  /// The URL's path, which takes thousands of instructions each time.
  let path: String
  let kind: AccessKind
  private(set) var readingOptions: ReadingOptions = []
  private(set) var writingOptions: WritingOptions = []
  /// Whether the accessor gets the real path if the caller may have named a link.
  private(set) var wantsRealPath = false
  /// Whether the accessor gets its own copy to read.
  var wantsSnapshot: Bool { readingOptions.contains(.forUploading) }

  init(url: URL, kind: AccessKind) {
    self.url = url
    self.kind = kind
    path = url.path
  }

  static func reading(_ url: URL, _ options: ReadingOptions) -> AccessRequest {
    var request = AccessRequest(
      url: url, kind: options.contains(.withoutChanges) ? .readingWithoutChanges : .reading)
    request.readingOptions = options
    request.wantsRealPath = options.contains(.resolvesSymbolicLink)
    return request
  }

  static func writing(_ url: URL, _ options: WritingOptions) -> AccessRequest {
    var request = AccessRequest(url: url, kind: options.kind)
    request.writingOptions = options
    request.wantsRealPath = true
    return request
  }

  /// Whether the item's directory may be missing: the accessor then works at the given path, where
  /// no other access can be in its way.
  private var mayLackDirectory: Bool {
    kind.isReading && !wantsSnapshot || writingOptions.contains(.makingDirectory)
  }

  /// Finds the item.
  ///
  /// - Returns: nil if its directory may be missing, and is.
  /// - Throws: as `ItemPath.find`; `notAnItem` for a URL of the web.
  func find() throws -> (place: ItemPath, item: SharedDescriptor?)? {
    guard !url.isFileURL, let scheme = url.scheme else {
      do {
        return try ItemPath.find(path, followingLink: kind.followsLink)
      } catch let error as WormholeError
        where error.code == .directoryMissing && mayLackDirectory
      {
        return nil
      }
    }
    throw WormholeError(
      .notAnItem, "find the item", path: path,
      reason: "its URL names no file: it begins with \(scheme):",
      remedy: "make it with URL(filePath:)")
  }

  /// The demand for presenters; nil if none is to be asked.
  func presenterDemand(at location: ItemPath, coversContents: Bool = false) -> PresenterDemand? {
    readingOptions.contains(.immediatelyAvailableMetadataOnly)
      ? nil : PresenterDemand(path: location, kind: kind, coversContents: coversContents)
  }
}

extension WritingOptions {
  fileprivate var kind: AccessKind {
    let kinds: [(WritingOptions, AccessKind)] = [
      (.inPlace, .locking),
      (.forDeleting, .deleting), (.forMoving, .moving), (.forReplacing, .replacing),
      (.contentIndependentMetadataOnly, .metadata), (.forMerging, .merging),
    ]
    return kinds.first { contains($0.0) }?.1 ?? .content
  }
}

/// How an item is read, with the original's names and values (NSFileCoordinator.ReadingOptions).
///
/// ```swift
/// // Does not ask presenters to save what they have not written yet.
/// try FileCoordinator().coordinate(readingItemAt: file, options: .withoutChanges) { url in
///   print(try Data(contentsOf: url).count)
/// }
/// ```
public struct ReadingOptions: OptionSet, Sendable, Hashable {
  /// The options as bits.
  public let rawValue: UInt

  /// Makes options from their bits.
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// Presenters are not asked to save their changes first.
  public static let withoutChanges = ReadingOptions(rawValue: 1 << 0)
  /// The accessor gets the target of a symbolic link.
  public static let resolvesSymbolicLink = ReadingOptions(rawValue: 1 << 1)
  /// Only metadata of the file system is read: no presenter is asked.
  public static let immediatelyAvailableMetadataOnly = ReadingOptions(rawValue: 1 << 2)
  /// The accessor gets its own copy, which does not change when others change the item, and is
  /// removed when the accessor has returned. A directory's copy is a zip file, "NAME.zip".
  public static let forUploading = ReadingOptions(rawValue: 1 << 3)
}

/// How an item is written; one option at a time. The original's names and values
/// (NSFileCoordinator.WritingOptions).
///
/// ```swift
/// try FileCoordinator().coordinate(writingItemAt: file, options: .forDeleting) { url in
///   try FileManager.default.removeItem(at: url)
/// }
/// ```
public struct WritingOptions: OptionSet, Sendable, Hashable {
  /// The options as bits.
  public let rawValue: UInt

  /// Makes options from their bits.
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// The accessor removes the item. Presenters are asked first; for a directory, the call waits for
  /// accesses to its contents.
  public static let forDeleting = WritingOptions(rawValue: 1 << 0)
  /// The accessor renames the item itself, which already is one step: it gets the real path, and
  /// calls `item(at:didMoveTo:)`. For a directory, the call waits for accesses to its contents.
  public static let forMoving = WritingOptions(rawValue: 1 << 1)
  /// Presenters are asked to save their changes first.
  public static let forMerging = WritingOptions(rawValue: 1 << 2)
  /// The accessor makes a new item: its private directory is initially empty. An item that is moved
  /// during the wait is not followed. In one access with an item `forMoving`, the accessor gets the
  /// real place, to move that item there.
  public static let forReplacing = WritingOptions(rawValue: 1 << 3)
  /// The accessor changes only mode and attributes, not the content: it gets the item's real path.
  public static let contentIndependentMetadataOnly = WritingOptions(rawValue: 1 << 4)
  /// The accessor changes the item itself, which costs no copy: for a large file changed in small
  /// places, a database, or a file whose hard links are to see the change. The original's accessors
  /// all work this way; it has no such option.
  ///
  /// Others, readers too, stay out of the item until the accessor has returned. But nothing is
  /// published in one step: what it has written stays, even if it throws or its process is killed,
  /// so the content must have its own way to recover, such as a journal. An accessor that was
  /// stopped for 50 ms, or took longer than its term, can lose the item to others, and then writes
  /// beside them when it continues; the call then throws `overtaken`.
  public static let inPlace = WritingOptions(rawValue: 1 << 32)
  /// With `forReplacing`, the accessor gets a copy of the item, to look at and remove.
  package static let showingItem = WritingOptions(rawValue: 1 << 33)
  /// The accessor of an item without a directory works at the item's own place, and makes it.
  package static let makingDirectory = WritingOptions(rawValue: 1 << 34)
}
