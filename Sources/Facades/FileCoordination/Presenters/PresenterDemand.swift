import FileClaims

/// The announcement of a coordinated access to an item.
package struct PresenterDemand: Sendable, Hashable {
  /// Absolute, without symbolic links.
  package let path: String
  package let kind: AccessKind

  package init(path: String, kind: AccessKind) {
    self.path = path
    self.kind = kind
  }
}

/// The asking coordinator, and the presenter it was made for, which hears nothing of its operations.
package struct PresenterClient: Sendable {
  package let id: String
  package let presenter: (any FilePresenter)?
  package let purposeIdentifier: String

  package init(id: String, presenter: (any FilePresenter)?, purposeIdentifier: String) {
    self.id = id
    self.presenter = presenter
    self.purposeIdentifier = purposeIdentifier
  }
}

/// One callback that a presenter answers.
enum PresenterStep: Hashable, Sendable {
  case relinquishToReader
  case relinquishToWriter
  case save
  case accommodateDeletion
  case accommodateSubitemDeletion(ItemPath)
}

extension PresenterStep {
  /// The requests to the presenter of an item for certain demands, as far as it answers them itself;
  /// empty when the demands do not concern it.
  ///
  /// As with `NSFileCoordinator`: the item's own presenters are asked to give it up; those of
  /// directories above are asked only about deletions, because a directory is not one unit with its
  /// contents; and the presenters of its contents, when it is deleted, replaced or moved.
  static func steps(
    for demands: [PresenterDemand], ofPresenterAt item: ItemPath, answering answered: AnsweredSteps
  ) -> [PresenterStep] {
    var steps: [PresenterStep] = []
    for demand in demands {
      let path = ItemPath(demand.path)
      let more =
        if path == item {
          toItem(demand.kind)
        } else if path.contains(item) {
          toContents(demand.kind)
        } else if item.contains(path) {
          toContainer(demand.kind, path)
        } else {
          [PresenterStep]()
        }
      // Asked twice for two demands of one access it would give back twice what it gave up once.
      steps += more.filter { answered.includes($0) && !steps.contains($0) }
    }
    return steps
  }

  private static func toItem(_ kind: AccessKind) -> [PresenterStep] {
    switch kind {
    case .reading, .sharing: [.relinquishToReader, .save]
    case .readingWithoutChanges: [.relinquishToReader]
    case .content, .moving, .metadata, .locking: [.relinquishToWriter]
    case .merging: [.save, .relinquishToWriter]
    case .deleting, .replacing: [.relinquishToWriter, .accommodateDeletion]
    }
  }

  private static func toContents(_ kind: AccessKind) -> [PresenterStep] {
    switch kind {
    case .deleting, .replacing: [.relinquishToWriter, .accommodateDeletion]
    case .moving: [.relinquishToWriter]
    default: []
    }
  }

  private static func toContainer(_ kind: AccessKind, _ path: ItemPath) -> [PresenterStep] {
    [.deleting, .replacing].contains(kind) ? [.accommodateSubitemDeletion(path)] : []
  }
}
