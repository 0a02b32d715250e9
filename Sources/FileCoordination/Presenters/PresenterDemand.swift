/// What a coordinated access is about to do to an item.
package struct PresenterDemand: Sendable, Hashable {
  /// Absolute, without symbolic links.
  package let path: String
  package let kind: Kind

  package init(path: String, kind: Kind) {
    self.path = path
    self.kind = kind
  }

  package enum Kind: Sendable, Hashable {
    case reading(savesChanges: Bool)
    case writing(Effect)
  }

  package enum Effect: String, Sendable, Hashable {
    case content, deleting, moving, merging, replacing, metadata
  }
}

/// Who asks: a coordinator, and the presenter it was made for, who hears nothing of its operations.
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
  /// What the presenter of an item is asked for certain demands, of what it answers itself; empty when
  /// they do not concern it.
  ///
  /// As with `NSFileCoordinator`: the item's own presenters are asked to give it up; those of
  /// directories above are asked only about deletions, for a directory is not one unit with what it
  /// contains; and those of what a directory contains, when it is deleted, replaced or moved.
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

  private static func toItem(_ kind: PresenterDemand.Kind) -> [PresenterStep] {
    switch kind {
    case .reading(let savesChanges):
      savesChanges ? [.relinquishToReader, .save] : [.relinquishToReader]
    case .writing(.content), .writing(.moving), .writing(.metadata): [.relinquishToWriter]
    case .writing(.merging): [.save, .relinquishToWriter]
    case .writing(.deleting), .writing(.replacing): [.relinquishToWriter, .accommodateDeletion]
    }
  }

  private static func toContents(_ kind: PresenterDemand.Kind) -> [PresenterStep] {
    switch kind {
    case .writing(.deleting), .writing(.replacing): [.relinquishToWriter, .accommodateDeletion]
    case .writing(.moving): [.relinquishToWriter]
    case .reading, .writing(.content), .writing(.merging), .writing(.metadata): []
    }
  }

  private static func toContainer(
    _ kind: PresenterDemand.Kind, _ path: ItemPath
  ) -> [PresenterStep] {
    switch kind {
    case .writing(.deleting), .writing(.replacing): [.accommodateSubitemDeletion(path)]
    case .reading, .writing(.content), .writing(.moving), .writing(.merging), .writing(.metadata):
      []
    }
  }
}
