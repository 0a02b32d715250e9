public import Foundation
import Synchronization
import WormholeFiles

/// A version of a file or directory: the item itself, or a copy that a conflict left beside it.
/// Source-compatible with the Foundation class of Apple's systems, as far as these versions go.
///
/// No system on Linux keeps old versions. But an access that was refused with a conflict, or
/// because others had the item until the deadline, keeps its copy as `<name>.conflict-<nonce>`: a
/// conflict version of the item until it is resolved. A resolved one is `<name>.resolved-<nonce>`
/// until it is removed. Both are ordinary files for every program and process. Copies of an item
/// whose name has more than 220 bytes are not found.
///
/// ```swift
/// for version in NSFileVersion.unresolvedConflictVersionsOfItem(at: file) ?? [] {
///   print(try Data(contentsOf: version.url).count, version.modificationDate ?? .distantPast)
///   version.isResolved = true
/// }
/// try NSFileVersion.removeOtherVersionsOfItem(at: file)
/// ```
///
/// Its `Sendable` is unchecked because it is open, like the original: its own properties are
/// `Sendable`, and a subclass is responsible for those that it adds.
open class NSFileVersion: NSObject, @unchecked Sendable {
  /// How `replaceItem(at:options:)` replaces an item.
  ///
  /// ```swift
  /// let options: NSFileVersion.ReplacingOptions = .byMoving
  /// ```
  public struct ReplacingOptions: OptionSet, Sendable {
    /// The options as bits.
    public let rawValue: UInt

    /// Makes options from their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The version is moved to the item's place; otherwise it is copied.
    public static let byMoving = ReplacingOptions(rawValue: 1 << 0)
  }

  private let item: KeptCopies
  /// Nil for the item itself.
  private let copy: Mutex<KeptCopies.Copy?>

  init(_ item: KeptCopies, _ copy: KeptCopies.Copy?) {
    self.item = item
    self.copy = Mutex(copy)
  }

  /// A version for a test, which overrides its members: the current one of no item.
  public override init() {
    item = KeptCopies(of: "/dev/null")
    copy = Mutex(nil)
    super.init()
  }

  // MARK: Finding

  /// Returns the item itself as a version.
  ///
  /// - Parameter url: the item's URL.
  /// - Returns: nil if there is no item.
  /// - Complexity: one look at the item.
  open class func currentVersionOfItem(at url: URL) -> NSFileVersion? {
    FileManager.default.fileExists(atPath: url.path)
      ? NSFileVersion(KeptCopies(of: url.path), nil) : nil
  }

  /// Returns all copies that conflicts left, resolved or not, oldest first.
  ///
  /// - Parameter url: the item's URL; the item need not exist.
  /// - Returns: nil if its directory cannot be read; the reason is an event of `Diagnostics`.
  /// - Complexity: reads the directory, and looks at each copy.
  open class func otherVersionsOfItem(at url: URL) -> [NSFileVersion]? {
    let item = KeptCopies(of: url.path)
    return item.all()?.map { NSFileVersion(item, $0) }
  }

  /// Returns the copies of conflicts that are not resolved yet, oldest first.
  ///
  /// - Parameter url: the item's URL; the item need not exist.
  /// - Returns: nil if its directory cannot be read; the reason is an event of `Diagnostics`.
  /// - Complexity: reads the directory, and looks at each copy.
  open class func unresolvedConflictVersionsOfItem(at url: URL) -> [NSFileVersion]? {
    otherVersionsOfItem(at: url)?.filter { !$0.isResolved }
  }

  /// Finds a version again.
  ///
  /// - Parameters:
  ///   - url: the item's URL.
  ///   - persistentIdentifier: the version's identifier.
  /// - Returns: nil if it was removed meanwhile.
  /// - Complexity: as `otherVersionsOfItem(at:)`.
  open class func version(
    itemAt url: URL, forPersistentIdentifier persistentIdentifier: Any
  ) -> NSFileVersion? {
    let wanted = persistentIdentifier as? NSString
    return
      ((otherVersionsOfItem(at: url) ?? []) + [currentVersionOfItem(at: url)].compactMap(\.self))
      .first { $0.persistentIdentifier as? NSString == wanted }
  }

  // MARK: Its properties

  /// Where its content is.
  open var url: URL { URL(fileURLWithPath: path) }

  private var path: String { copy.withLock { $0?.path } ?? item.path }

  /// The name of the item.
  open var localizedName: String? { URL(fileURLWithPath: item.path).lastPathComponent }

  /// Always nil: all conflicts are those of one machine.
  open var localizedNameOfSavingComputer: String? { nil }

  /// When its content was last changed; nil if it is gone.
  ///
  /// - Complexity: one look at the file.
  open var modificationDate: Date? {
    // Nil is also the original's answer for a version that was removed.
    try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
  }

  /// Identifies it in another process or later, resolved or not: a string.
  open var persistentIdentifier: any NSCoding {
    (copy.withLock { $0?.nonce } ?? "current") as NSString
  }

  /// Whether a conflict left it.
  open var isConflict: Bool { copy.withLock { $0 != nil } }

  /// Whether its conflict is resolved; true for the item itself. Setting it to true renames the
  /// copy, for all processes, and the item's presenters are notified; setting it to false does
  /// nothing, as in the original. A failure is an event of `Diagnostics`.
  open var isResolved: Bool {
    get { copy.withLock { $0?.isResolved } ?? true }
    set {
      guard newValue, copy.withLock({ item.resolve(&$0) }) else { return }
      item.report(.resolved, path)
    }
  }

  /// Always false: no system removes it.
  open var isDiscardable: Bool { false }

  /// Always true: its content is here.
  open var hasLocalContents: Bool { true }

  /// Always false.
  open var hasThumbnail: Bool { false }

  // MARK: Using it

  /// Puts its content in place of an item, in one step for others; coordinate the item for that.
  ///
  /// - Parameters:
  ///   - url: the item to replace: usually the URL that an accessor gets.
  ///   - options: whether the version is moved there.
  /// - Returns: the item's URL.
  /// - Throws: a Foundation or `FileCoordinator` error; the item is then as it was, or replaced.
  /// - Complexity: without `byMoving`, a copy of the content.
  @discardableResult
  open func replaceItem(at url: URL, options: ReplacingOptions = []) throws -> URL {
    let isMoved = options.contains(.byMoving)
    let left = try KeptCopies.put(path, at: url.path, isCopied: !isMoved)
    if let left { try FileManager.default.removeItem(atPath: left) }
    if isMoved, isConflict { item.report(.lost, path) }
    return url
  }

  /// Removes it; not for the item itself.
  ///
  /// - Throws: an error of Foundation; `CocoaError.featureUnsupported` for the item itself.
  /// - Complexity: one removal, for a directory with all its contents.
  open func remove() throws {
    guard isConflict else { throw CocoaError(.featureUnsupported) }
    try FileManager.default.removeItem(atPath: path)
    item.report(.lost, path)
  }

  /// Removes all copies of conflicts, even unresolved ones.
  ///
  /// - Parameter url: the item's URL.
  /// - Throws: an error of Foundation; some may then be left.
  /// - Complexity: as `otherVersionsOfItem(at:)`, and a removal of each.
  open class func removeOtherVersionsOfItem(at url: URL) throws {
    for version in otherVersionsOfItem(at: url) ?? [] { try version.remove() }
  }
}
