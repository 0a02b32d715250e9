import Dispatch
import Synchronization

/// What a presenter is told and need not answer.
enum PresenterNotice: Hashable, Sendable {
  case changed
  case moved(ItemPath)
  case subitemAppeared(ItemPath)
  case subitemChanged(ItemPath)
  case subitemMoved(ItemPath, ItemPath)

  func deliver(to presenter: any FilePresenter) {
    switch self {
    case .changed: presenter.presentedItemDidChange()
    case .moved(let new): presenter.presentedItemDidMove(to: new.url)
    case .subitemAppeared(let path): presenter.presentedSubitemDidAppear(at: path.url)
    case .subitemChanged(let path): presenter.presentedSubitemDidChange(at: path.url)
    case .subitemMoved(let old, let new):
      presenter.presentedSubitem(at: old.url, didMoveTo: new.url)
    }
  }

  // Told twice before the first was heard is told once; a place that something was moved to or from
  // means another thing before and after.
  fileprivate var isMove: Bool {
    switch self {
    case .moved, .subitemMoved: true
    case .changed, .subitemAppeared, .subitemChanged: false
    }
  }
}

/// Brings callbacks to a presenter's queue, one at a time and in order, also where that queue is
/// concurrent: the next is enqueued when the last has returned.
final class PresenterMailbox: Sendable {
  private enum Letter {
    case notice(PresenterNotice)
    case call(@Sendable (any FilePresenter) -> Void)
    /// Is called even when the presenter was removed: somebody counts on it.
    case owed(@Sendable () -> Void)

    var isOwed: Bool { if case .owed = self { true } else { false } }
  }

  private struct State {
    var letters: [Letter] = []
    var waiting: Set<PresenterNotice> = []
    var isDelivering = false
    var isClosed = false
  }

  /// More notices than this wait only for a presenter that does not listen: they become one.
  private static let maximumNotices = 10_000

  let queue: DispatchQueue
  private let presenter: any FilePresenter
  private let state = Mutex(State())

  init(_ presenter: any FilePresenter) {
    self.presenter = presenter
    queue = presenter.presentedItemQueue
  }

  func post(_ notices: [PresenterNotice]) {
    let mustDeliver = state.withLock { state in
      guard !state.isClosed else { return false }
      for notice in notices { Self.add(notice, to: &state) }
      return Self.begin(&state)
    }
    if mustDeliver { enqueue() }
  }

  /// Asks the presenter something; nothing happens when it was removed.
  func post(call: @escaping @Sendable (any FilePresenter) -> Void) { post(.call(call)) }

  /// Calls a closure of the presenter's, also when it was removed.
  func post(owed: @escaping @Sendable () -> Void) { post(.owed(owed)) }

  private func post(_ letter: Letter) {
    let mustDeliver = state.withLock { state in
      guard !state.isClosed || letter.isOwed else { return false }
      state.letters.append(letter)
      return Self.begin(&state)
    }
    if mustDeliver { enqueue() }
  }

  /// No callback begins after this.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.letters.removeAll { !$0.isOwed }
      state.waiting = []
    }
  }

  private static func add(_ notice: PresenterNotice, to state: inout State) {
    if notice.isMove {
      state.waiting = []
    } else if state.waiting.contains(notice) {
      return
    }
    if state.letters.count >= maximumNotices {
      state.letters.removeAll { if case .notice = $0 { true } else { false } }
      state.waiting = []
      if notice != .changed { add(.changed, to: &state) }
    }
    state.letters.append(.notice(notice))
    if !notice.isMove { state.waiting.insert(notice) }
  }

  private static func begin(_ state: inout State) -> Bool {
    guard !state.isDelivering, !state.letters.isEmpty else { return false }
    state.isDelivering = true
    return true
  }

  private func enqueue() { queue.async { self.deliver() } }

  private func deliver() {
    let letters = state.withLock { state in
      // Taken all at once: taken one by one from the front, each would move all the others.
      let letters = state.letters
      state.letters = []
      state.waiting = []
      return letters
    }
    deliver(letters[...])
  }

  private func deliver(_ letters: ArraySlice<Letter>) {
    guard let letter = letters.first else {
      let mustDeliver = state.withLock { state in
        state.isDelivering = false
        return Self.begin(&state)
      }
      if mustDeliver { enqueue() }
      return
    }
    if letter.isOwed || !state.withLock({ $0.isClosed }) { perform(letter) }
    let rest = letters.dropFirst()
    if rest.isEmpty { deliver(rest) } else { queue.async { self.deliver(rest) } }
  }

  private func perform(_ letter: Letter) {
    switch letter {
    case .notice(let notice): notice.deliver(to: presenter)
    case .call(let call): call(presenter)
    case .owed(let call): call()
    }
  }
}
