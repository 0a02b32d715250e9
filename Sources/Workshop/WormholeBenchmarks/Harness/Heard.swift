import Dispatch
import Synchronization
import WormholeToolkit
import WormholeWorkshop

/// The last thing that an observer was called with, and when.
final class Heard<Element: Sendable>: Sendable {
  private let last = Mutex<(element: Element, at: ContinuousClock.Instant)?>(nil)
  private let news = DispatchSemaphore(value: 0)

  func note(_ element: Element) {
    last.withLock { $0 = (element, .now) }
    news.signal()
  }

  /// - Returns: The time of the call with the awaited element.
  @discardableResult
  func wait(for isWanted: (Element) -> Bool) throws -> ContinuousClock.Instant {
    while true {
      if let (element, time) = last.withLock({ $0 }), isWanted(element) { return time }
      guard news.wait(timeout: .now() + .seconds(30)) == .success else {
        throw Failure(description: "the observer was not notified")
      }
    }
  }
}
