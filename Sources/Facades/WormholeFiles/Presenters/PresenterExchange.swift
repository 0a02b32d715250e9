import Synchronization
import WormholePropertyLists

/// The announcement of a coordinated access to an item.
package struct PresenterDemand: Sendable, Hashable {
  /// Absolute, without symbolic links.
  package let path: ItemPath
  package let kind: AccessKind
  /// Whether the presenters of a directory's contents are asked, too.
  package let coversContents: Bool

  /// - Parameter coversContents: whether that is so even if the kind does not demand it: accesses
  ///   to the contents follow.
  package init(path: ItemPath, kind: AccessKind, coversContents: Bool = false) {
    self.path = path
    self.kind = kind
    self.coversContents = coversContents || kind.coversContents
  }

  /// Whether presenters that were asked for this need not be asked for the other.
  func covers(_ other: PresenterDemand) -> Bool {
    let isSame = path == other.path && (coversContents || !other.coversContents)
    return (isSame || coversContents && path.contains(other.path))
      && Set(PresenterStep.toItem(kind)).isSuperset(of: PresenterStep.toItem(other.kind))
  }
}

/// One callback that a presenter answers.
enum PresenterStep: Hashable, Sendable {
  /// The names appear in the presenter's registration, so that people can read them.
  enum Kind: String, CaseIterable, Sendable {
    case reader, writer, save, deletion, subitemDeletion
  }

  case relinquishToReader, relinquishToWriter, save, accommodateDeletion
  case accommodateSubitemDeletion(ItemPath)

  var kind: Kind {
    switch self {
    case .relinquishToReader: .reader
    case .relinquishToWriter: .writer
    case .save: .save
    case .accommodateDeletion: .deletion
    case .accommodateSubitemDeletion: .subitemDeletion
    }
  }

  /// The requests to an item's presenter for certain demands, as far as it answers them itself;
  /// empty if the demands do not concern it.
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
        if path == item || path.contains(item) && demand.coversContents {
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

  fileprivate static func toItem(_ kind: AccessKind) -> [PresenterStep] {
    switch kind {
    case .reading, .sharing: [.relinquishToReader, .save]
    case .readingWithoutChanges: [.relinquishToReader]
    case .content, .moving, .metadata, .locking: [.relinquishToWriter]
    case .merging: [.save, .relinquishToWriter]
    case .deleting, .replacing, .receiving: [.relinquishToWriter, .accommodateDeletion]
    }
  }
}

/// The requests that a presenter itself answers. Its default implementations would let the other
/// side continue at once, so those are not sent, and no access waits for the presenter's queue.
typealias AnsweredSteps = Set<PresenterStep.Kind>

extension AnsweredSteps {
  static var all: AnsweredSteps { AnsweredSteps(PresenterStep.Kind.allCases) }

  /// A presenter's answers. Its conformance shows them, because the default implementations have
  /// their own result type.
  init<Presenter: FilePresenter>(of presenter: Presenter) {
    let results: [(kind: PresenterStep.Kind, type: Any.Type)] = [
      (.reader, Presenter._ReaderAnswer.self), (.writer, Presenter._WriterAnswer.self),
      (.save, Presenter._SaveAnswer.self), (.deletion, Presenter._DeletionAnswer.self),
      (.subitemDeletion, Presenter._SubitemDeletionAnswer.self),
    ]
    self = Set(results.filter { $0.type != AnsweredByDefault.self }.map(\.kind))
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

/// The questions of one access to one of this process's presenters, and the answers.
///
/// ```
/// asking ── the last answer, a refusal, or the presenter leaves ──▶ answered
///    │                                                                 │
///    └────────────── the access is over (finish) ─────────▶ over ◀─────┘
/// ```
/// Reacquirers are called when the access is over, each exactly once. One that a stopped or slow
/// presenter passes after that is called at once.
final class PresenterExchange: Sendable {
  private enum Phase { case asking, answered, over }

  private struct State {
    var phase = Phase.asking
    /// The number of answered steps: a second answer to one is ignored.
    var answers = 0
    /// Whether the presenter was called for the next answer.
    var isCalled = false
    var reacquirers: [@Sendable () -> Void] = []
  }

  private let presenter: RegisteredPresenter
  private let steps: [PresenterStep]
  /// Whether a presenter's callback waits for the answers.
  private let isForCallback: Bool
  private let answered: @Sendable ((any Error)?) -> Void
  private let state = Mutex(State())

  /// - Parameter answered: called once, on any thread, unless the access is over before; gets the
  ///   error of a presenter that refuses.
  init(
    _ presenter: RegisteredPresenter, _ steps: [PresenterStep], isForCallback: Bool,
    answered: @escaping @Sendable ((any Error)?) -> Void
  ) {
    self.presenter = presenter
    self.steps = steps
    self.isForCallback = isForCallback
    self.answered = answered
  }

  func start() {
    guard presenter.open(self) else { return end() }
    ask(0)
  }

  private func ask(_ index: Int) {
    guard index < steps.count else { return end() }
    presenter.callbacks.post { self.perform(index, on: $0) }
    if presenter.isWaiting { presenterWaits() }
  }

  private func perform(_ index: Int, on presenter: any FilePresenter) {
    let isWanted = state.withLock { state in
      state.isCalled = true
      return state.phase == .asking
    }
    // The access was given up meanwhile.
    guard isWanted else { return }
    let completion: @Sendable ((any Error)?) -> Void = { self.take($0, nil, index) }
    let relinquished: @Sendable ((@Sendable () -> Void)?) -> Void = { self.take(nil, $0, index) }
    switch steps[index] {
    case .relinquishToReader: presenter.relinquishPresentedItem(toReader: relinquished)
    case .relinquishToWriter: presenter.relinquishPresentedItem(toWriter: relinquished)
    case .save: presenter.savePresentedItemChanges(completionHandler: completion)
    case .accommodateDeletion:
      presenter.accommodatePresentedItemDeletion(completionHandler: completion)
    case .accommodateSubitemDeletion(let path):
      presenter.accommodatePresentedSubitemDeletion(at: path.url, completionHandler: completion)
    }
  }

  private func take(_ error: (any Error)?, _ reacquirer: (@Sendable () -> Void)?, _ index: Int) {
    let (isNew, phase) = state.withLock { state in
      guard state.answers == index else { return (false, state.phase) }
      state.answers += 1
      state.isCalled = false
      // Excludes: the access ends between the look and the keeping, which would lose the call.
      if state.phase != .over, let reacquirer { state.reacquirers.append(reacquirer) }
      return (true, state.phase)
    }
    guard isNew else { return }
    if phase == .over, let reacquirer {
      presenter.callbacks.post(isOwed: true) { _ in reacquirer() }
    }
    guard phase == .asking else { return }
    if let error { end(error) } else { ask(index + 1) }
  }

  /// No access waits for the presenter any longer: it has answered, or was removed.
  func end(_ failure: (any Error)? = nil) {
    let isFirst = state.withLock { state in
      guard state.phase == .asking else { return false }
      state.phase = .answered
      return true
    }
    if isFirst { answered(failure) }
  }

  /// A callback of the presenter waits for an access. If another callback waits for its answer,
  /// each may wait for the other, so it is not asked unless it was already called.
  func presenterWaits() {
    if isForCallback, !state.withLock({ $0.isCalled }) { end() }
  }

  /// The access is over, or given up.
  func finish() {
    let reacquirers = state.withLock { state in
      state.phase = .over
      return exchange(&state.reacquirers, with: [])
    }
    presenter.close(self)
    for reacquirer in reacquirers { presenter.callbacks.post(isOwed: true) { _ in reacquirer() } }
  }
}
