import Synchronization

/// The calls of a handler.
package final class Heard<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  package init() {}
  package func add(_ element: Element) { elements.withLock { $0.append(element) } }
  package var all: [Element] { elements.withLock { $0 } }
}
