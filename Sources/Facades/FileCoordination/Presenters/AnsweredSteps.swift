import PropertyLists

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
