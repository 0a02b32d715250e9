import FoundationEssentials

/// One item of a coordinated access, as its caller asked for it.
struct AccessRequest: Sendable {
  enum Kind: Sendable, Hashable {
    case reading(ReadingOptions)
    case writing(WritingOptions)
    /// The item itself, for programs that can work on nothing else.
    case locking(isShared: Bool)
  }

  let path: String
  let kind: Kind
  /// Where it says that it is, if not in the file system.
  private let scheme: String?

  init(_ url: URL, _ kind: Kind) {
    path = url.path
    scheme = url.isFileURL ? nil : url.scheme
    self.kind = kind
  }

  /// Finds the item.
  ///
  /// - Throws: as `ItemLocation.resolve`; `notAnItem` for what is on the web.
  func location() throws -> ItemLocation {
    guard let scheme else {
      return try ItemLocation.resolve(path, followingLink: demand.followsLink)
    }
    throw FileCoordinationError(
      .notAnItem, "find the item", path: path,
      reason: "its URL is none of a file, but of \(scheme):",
      remedy: "make it with URL(filePath:)")
  }

  /// What has to be held for it.
  var demand: ItemDemand {
    switch kind {
    case .reading: ItemDemand(kind: .reading, action: "read the item")
    case .locking(let isShared):
      ItemDemand(
        kind: isShared ? .sharing : .inPlace, action: isShared ? "share the item" : "lock the item")
    case .writing(let options): Self.demand(options)
    }
  }

  private static func demand(_ options: WritingOptions) -> ItemDemand {
    if options.contains(.forDeleting) {
      return ItemDemand(
        kind: .copying(.names), coversContents: true, followsLink: false, action: "delete the item")
    }
    if options.contains(.forMoving) {
      return ItemDemand(
        kind: .inPlace, coversContents: true, followsLink: false, action: "move the item")
    }
    if options.contains(.forReplacing) {
      return ItemDemand(
        kind: .copying(.nothing), coversContents: true, followsMoves: false,
        action: "replace the item")
    }
    if options.contains(.contentIndependentMetadataOnly) {
      return ItemDemand(kind: .inPlace, action: "change the item's attributes")
    }
    return ItemDemand(kind: .copying(.content), action: "change the item")
  }

  var isReading: Bool { if case .reading = kind { true } else { false } }

  /// Whether the accessor gets a copy that is its own.
  var wantsSnapshot: Bool {
    if case .reading(let options) = kind { options.contains(.forUploading) } else { false }
  }

  /// Whether the accessor gets the place itself where the caller may have named a link to it.
  var wantsRealPath: Bool {
    switch kind {
    case .reading(let options): options.contains(.resolvesSymbolicLink)
    case .writing: true
    case .locking: false
    }
  }

  /// What presenters are asked; nil when nobody is.
  func presenterDemand(at location: ItemLocation) -> PresenterDemand? {
    switch kind {
    case .reading(let options):
      if options.contains(.immediatelyAvailableMetadataOnly) { return nil }
      return PresenterDemand(
        path: location.path, kind: .reading(savesChanges: !options.contains(.withoutChanges)))
    case .writing(let options):
      return PresenterDemand(path: location.path, kind: .writing(Self.effect(options)))
    case .locking(let isShared):
      return PresenterDemand(
        path: location.path,
        kind: isShared ? .reading(savesChanges: true) : .writing(.content))
    }
  }

  private static func effect(_ options: WritingOptions) -> PresenterDemand.Effect {
    if options.contains(.forDeleting) { return .deleting }
    if options.contains(.forMoving) { return .moving }
    if options.contains(.forMerging) { return .merging }
    if options.contains(.forReplacing) { return .replacing }
    return options.contains(.contentIndependentMetadataOnly) ? .metadata : .content
  }
}
