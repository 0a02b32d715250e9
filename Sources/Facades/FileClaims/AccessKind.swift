package import FileTrees

/// The use of one item by a coordinated access. Presenters of other processes read it by name.
package enum AccessKind: String, Sendable, Hashable, CaseIterable {
  /// Reads the item while no access publishes it; presenters save their changes first.
  case reading
  /// The same, but presenters need not save.
  case readingWithoutChanges
  /// Changes a private copy, which is published at the end.
  case content
  /// The same, and presenters save their changes first.
  case merging
  /// Makes the item again in a private place that is empty at first.
  case replacing
  /// Removes the item; its private copy consists of second names.
  case deleting
  /// Renames the item where it is.
  case moving
  /// Changes the attributes of the item where it is.
  case metadata
  /// Keeps the item from all other processes while a program works on it in place.
  case locking
  /// Keeps the item from being changed, whether it exists or not.
  case sharing

  package var isReading: Bool { self == .reading || self == .readingWithoutChanges }

  /// Whether an access of any other kind to the same item is enough for this one, too.
  package var isWeakerThanWriting: Bool { isReading || self == .sharing }

  /// What is held for it besides a lock on the item; nil for readers, which need no more than that.
  package var claim: ClaimName.Kind? {
    switch self {
    case .reading, .readingWithoutChanges: nil
    case .content, .merging, .replacing, .deleting: .copying
    case .moving, .metadata, .locking: .inPlace
    case .sharing: .sharing
    }
  }

  /// Whether its accessor gets a private copy.
  package var isOnCopy: Bool { claim == .copying }

  /// How the private copy is made; nil when it is empty at first, or there is none.
  package var copyMode: TreeCopy.Mode? {
    switch self {
    case .content, .merging: .copy
    case .deleting: .link
    default: nil
    }
  }

  /// Whether the private copy has content of its own.
  package var copiesContent: Bool { copyMode == .copy }

  /// Whether accesses to what is in the directory are waited for, and kept out.
  var coversContents: Bool { [.deleting, .moving, .replacing].contains(self) }

  /// Whether a symbolic link means what it points to.
  package var followsLink: Bool { self != .deleting && self != .moving }

  /// Whether an item that is moved while it is waited for is looked for at its new place.
  var followsMoves: Bool { self != .replacing }

  /// A verb with its object, for sentences.
  package var action: String {
    switch self {
    case .reading, .readingWithoutChanges: "read the item"
    case .content, .merging: "change the item"
    case .replacing: "replace the item"
    case .deleting: "delete the item"
    case .moving: "move the item"
    case .metadata: "change the item's attributes"
    case .locking: "lock the item"
    case .sharing: "share the item"
    }
  }
}
