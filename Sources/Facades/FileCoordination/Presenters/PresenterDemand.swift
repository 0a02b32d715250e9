import FileClaims
import PropertyLists

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

/// The requests that a presenter answers itself. Its default implementations would let the other side
/// go on at once, so those requests are not sent, and no access waits for the presenter's queue.
struct AnsweredSteps: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let reader = AnsweredSteps(rawValue: 1 << 0)
  static let writer = AnsweredSteps(rawValue: 1 << 1)
  static let save = AnsweredSteps(rawValue: 1 << 2)
  static let deletion = AnsweredSteps(rawValue: 1 << 3)
  static let subitemDeletion = AnsweredSteps(rawValue: 1 << 4)

  static let all: AnsweredSteps = [.reader, .writer, .save, .deletion, .subitemDeletion]
}

extension AnsweredSteps {
  /// The answers of a presenter. Its conformance shows them, because the default implementations have a
  /// result type of their own.
  init(of presenter: any FilePresenter) {
    self = type(of: presenter).answeredSteps
  }

  func includes(_ step: PresenterStep) -> Bool {
    switch step {
    case .relinquishToReader: contains(.reader)
    case .relinquishToWriter: contains(.writer)
    case .save: contains(.save)
    case .accommodateDeletion: contains(.deletion)
    case .accommodateSubitemDeletion: contains(.subitemDeletion)
    }
  }
}

extension FilePresenter {
  fileprivate static var answeredSteps: AnsweredSteps {
    var steps = AnsweredSteps()
    if _ReaderAnswer.self != AnsweredByDefault.self { steps.insert(.reader) }
    if _WriterAnswer.self != AnsweredByDefault.self { steps.insert(.writer) }
    if _SaveAnswer.self != AnsweredByDefault.self { steps.insert(.save) }
    if _DeletionAnswer.self != AnsweredByDefault.self { steps.insert(.deletion) }
    if _SubitemDeletionAnswer.self != AnsweredByDefault.self { steps.insert(.subitemDeletion) }
    return steps
  }
}

/// The form in the presenter's registration: names, so that people can read them.
extension AnsweredSteps {
  private static let names: [(AnsweredSteps, String)] = [
    (.reader, "reader"), (.writer, "writer"), (.save, "save"), (.deletion, "deletion"),
    (.subitemDeletion, "subitemDeletion"),
  ]

  var propertyList: PropertyListValue {
    .array(Self.names.filter { contains($0.0) }.map { .string($0.1) })
  }

  /// - Parameter value: nil for a registration without this entry: then everything is asked.
  init(_ value: PropertyListValue?) {
    guard let names = value?.arrayValue?.compactMap(\.stringValue) else {
      self = .all
      return
    }
    self = AnsweredSteps(Self.names.filter { names.contains($0.1) }.map(\.0))
  }
}
