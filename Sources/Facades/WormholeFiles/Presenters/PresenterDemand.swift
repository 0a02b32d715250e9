import WormholePropertyLists

/// The announcement of a coordinated access to an item.
package struct PresenterDemand: Sendable, Hashable {
  /// Absolute, without symbolic links.
  package let path: ItemPath
  package let kind: AccessKind

  package init(path: String, kind: AccessKind) {
    self.init(path: ItemPath(path), kind: kind)
  }

  package init(path: ItemPath, kind: AccessKind) {
    self.path = path
    self.kind = kind
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
  /// The requests to the presenter of an item for certain demands, as far as it answers them
  /// itself; empty when the demands do not concern it.
  ///
  /// As with `NSFileCoordinator`: the item's own presenters are asked to give it up; presenters of
  /// directories above are asked only about deletions, because a directory is not one unit with its
  /// contents; and presenters of its contents, when it is deleted, replaced or moved.
  static func steps(
    for demands: [PresenterDemand], ofPresenterAt item: ItemPath, answering answered: AnsweredSteps
  ) -> [PresenterStep] {
    var steps: [PresenterStep] = []
    for demand in demands {
      let path = demand.path
      let more =
        if path == item {
          toItem(demand.kind)
        } else if path.contains(item), demand.kind.coversContents {
          toItem(demand.kind)
        } else if item.contains(path), [.deleting, .replacing].contains(demand.kind) {
          [PresenterStep.accommodateSubitemDeletion(path)]
        } else {
          [PresenterStep]()
        }
      // If two demands of one access asked it twice, it would give back twice what it gave up once.
      steps += more.filter { answered.contains($0.kind) && !steps.contains($0) }
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
}

extension PresenterStep {
  /// The names appear in the presenter's registration, so that people can read them.
  enum Kind: String, CaseIterable, Sendable {
    case reader, writer, save, deletion, subitemDeletion
  }

  fileprivate var kind: Kind {
    switch self {
    case .relinquishToReader: .reader
    case .relinquishToWriter: .writer
    case .save: .save
    case .accommodateDeletion: .deletion
    case .accommodateSubitemDeletion: .subitemDeletion
    }
  }
}

/// The requests that a presenter answers itself. Its default implementations would let the other side
/// continue at once, so those requests are not sent, and no access waits for the presenter's queue.
typealias AnsweredSteps = Set<PresenterStep.Kind>

extension AnsweredSteps {
  static var all: AnsweredSteps { AnsweredSteps(PresenterStep.Kind.allCases) }

  /// The answers of a presenter. Its conformance shows them, because the default implementations
  /// have their own result type.
  init(of presenter: any FilePresenter) {
    self = type(of: presenter).answeredSteps
  }

  /// - Parameter value: nil for a registration without this entry: then every request is sent.
  init(_ value: PropertyListValue?) {
    let names = value?.arrayValue?.compactMap(\.stringValue)
    self = names.map { Set($0.compactMap { PresenterStep.Kind(rawValue: $0) }) } ?? .all
  }

  var propertyList: PropertyListValue {
    .array(PresenterStep.Kind.allCases.filter { contains($0) }.map { .string($0.rawValue) })
  }
}

extension FilePresenter {
  fileprivate static var answeredSteps: AnsweredSteps {
    let results: [(kind: PresenterStep.Kind, type: Any.Type)] = [
      (.reader, _ReaderAnswer.self), (.writer, _WriterAnswer.self), (.save, _SaveAnswer.self),
      (.deletion, _DeletionAnswer.self), (.subitemDeletion, _SubitemDeletionAnswer.self),
    ]
    return Set(results.filter { $0.type != AnsweredByDefault.self }.map(\.kind))
  }
}
