import AppGroup
import FoundationEssentials
import Synchronization

/// The presenters of this process.
final class PresenterRegistry: Sendable {
  static let shared = PresenterRegistry()

  private struct Row {
    let presenter: RegisteredPresenter
    /// How often it was added; it is removed as often.
    var uses = 1
  }

  private let rows = Mutex<[ObjectIdentifier: Row]>([:])

  var all: [RegisteredPresenter] { rows.withLock { $0.values.map(\.presenter) } }

  func registered(_ presenter: any FilePresenter) -> RegisteredPresenter? {
    rows.withLock { $0[ObjectIdentifier(presenter)]?.presenter }
  }

  func registered(_ id: String) -> RegisteredPresenter? {
    rows.withLock { $0.values.first { $0.presenter.id == id }?.presenter }
  }

  func add(_ presenter: any FilePresenter) throws {
    let key = ObjectIdentifier(presenter)
    let new = rows.withLock { rows -> RegisteredPresenter? in
      guard rows[key] == nil else {
        rows[key]?.uses += 1
        return nil
      }
      let new = RegisteredPresenter(presenter)
      rows[key] = Row(presenter: new)
      return new
    }
    do {
      try new?.presentItem()
    } catch {
      rows.withLock { _ = $0.removeValue(forKey: key) }
      new?.remove()
      throw error
    }
  }

  func remove(_ presenter: any FilePresenter) {
    let key = ObjectIdentifier(presenter)
    let old = rows.withLock { rows -> RegisteredPresenter? in
      guard let row = rows[key] else { return nil }
      guard row.uses == 1 else {
        rows[key]?.uses -= 1
        return nil
      }
      rows[key] = nil
      return row.presenter
    }
    old?.remove()
  }
}
