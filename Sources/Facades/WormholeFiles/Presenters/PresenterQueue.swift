import Dispatch
import FoundationEssentials
import Synchronization
import WormholeSystem

/// A notice to a presenter, which needs no answer.
enum PresenterNotice: Hashable, Sendable {
  case changed
  case moved(ItemPath)
  case subitemAppeared(ItemPath)
  case subitemChanged(ItemPath)
  case subitemMoved(ItemPath, ItemPath)
  case version(KeptCopies.Event, ItemPath, of: ItemPath, isSubitem: Bool)

  func deliver(to presenter: any FilePresenter) {
    switch self {
    case .changed: presenter.reportChange(at: presenter.presentedItemURL)
    case .moved(let new): presenter.presentedItemDidMove(to: new.url)
    case .subitemAppeared(let path): presenter.presentedSubitemDidAppear(at: path.url)
    case .subitemChanged(let path): presenter.presentedSubitemDidChange(at: path.url)
    case .subitemMoved(let old, let new):
      presenter.presentedSubitem(at: old.url, didMoveTo: new.url)
    case .version(let event, let path, let item, let isSubitem):
      let copies = KeptCopies(item: item)
      guard let copy = copies.copy(path.name.text) else { return }
      (presenter as? any OriginalPresenter)?.hear(event, copy, of: copies, isSubitem: isSubitem)
    }
  }

  // Two equal waiting notices become one; a move's place means something different before and after
  // it.
  fileprivate var isMove: Bool {
    switch self {
    case .moved, .subitemMoved: true
    case .changed, .subitemAppeared, .subitemChanged, .version: false
    }
  }
}

/// Brings callbacks to a presenter's queue, one at a time and in order, even if that queue is
/// concurrent: the next is enqueued when the last has returned.
final class PresenterQueue: Sendable {
  private struct Message {
    /// Nil for a question, and for an owed call.
    var notice: PresenterNotice?
    /// Called even if the presenter was removed, because its program relies on it.
    var isOwed = false
    let deliver: @Sendable (any FilePresenter) -> Void
  }

  private struct State {
    /// A slice, because taking the first element of an array would move all the others.
    var messages: ArraySlice<Message> = []
    var waiting: Set<PresenterNotice> = []
    var isDelivering = false
    /// The thread of the current callback.
    var thread: ThreadID?
    var isClosed = false
  }

  /// More waiting notices than this mean that the presenter does not respond: they become one.
  private static let maximumNotices = 10_000

  private let enqueue: @Sendable (@escaping @Sendable () -> Void) -> Void
  private let presenter: any FilePresenter
  private let state = Mutex(State())

  init(_ presenter: any FilePresenter) {
    self.presenter = presenter
    let queue = presenter.presentedItemQueue
    if let original = presenter as? any OriginalPresenter {
      enqueue = { original.enqueue($0) }
    } else {
      enqueue = { queue.async(execute: $0) }
    }
  }

  /// Whether the caller is in a callback of this presenter.
  var isCalling: Bool {
    let current = ThreadID.current
    return state.withLock { $0.thread == current }
  }

  func post(_ notices: [PresenterNotice]) {
    update { state in
      guard !state.isClosed else { return }
      for notice in notices { Self.add(notice, to: &state) }
    }
  }

  /// Calls the presenter; does nothing if it was removed, unless the call is owed.
  func post(isOwed: Bool = false, call: @escaping @Sendable (any FilePresenter) -> Void) {
    update { state in
      guard !state.isClosed || isOwed else { return }
      state.messages.append(Message(isOwed: isOwed, deliver: call))
    }
  }

  /// Delivers waiting messages after a change, unless that is under way.
  private func update(_ body: (inout State) -> Void) {
    let mustDeliver = state.withLock { state in
      body(&state)
      guard !state.isDelivering, !state.messages.isEmpty else { return false }
      state.isDelivering = true
      return true
    }
    if mustDeliver { enqueue { self.deliver() } }
  }

  /// No callback begins after this.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.messages.removeAll { !$0.isOwed }
      state.waiting = []
    }
  }

  private static func add(_ notice: PresenterNotice, to state: inout State) {
    if notice.isMove {
      state.waiting = []
    } else if state.waiting.contains(notice) {
      return
    }
    if state.messages.count >= maximumNotices {
      state.messages.removeAll { $0.notice != nil }
      state.waiting = []
      if notice != .changed { add(.changed, to: &state) }
    }
    state.messages.append(Message(notice: notice) { notice.deliver(to: $0) })
    if !notice.isMove { state.waiting.insert(notice) }
  }

  private func deliver() {
    let message = state.withLock { state in
      let message = state.messages.popFirst()
      if let notice = message?.notice { state.waiting.remove(notice) }
      // The array of a slice keeps the delivered ones.
      if state.messages.isEmpty { state.messages = [] }
      state.thread = .current
      return message
    }
    message?.deliver(presenter)
    update { state in
      state.thread = nil
      state.isDelivering = false
    }
  }
}

extension ItemPath {
  /// With a slash at its end for a directory.
  var url: URL { URL(filePath: text, directoryHint: .checkFileSystem) }
}
