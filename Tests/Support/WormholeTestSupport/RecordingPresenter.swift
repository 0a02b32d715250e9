package import Dispatch
package import FoundationEssentials
import Synchronization
import WormholeFiles

/// A presenter that records its callbacks, and answers in the manner that a test chooses.
package final class RecordingPresenter: FilePresenter {
  /// The manner of its answers.
  package enum Manner: String, Sendable {
    case answers
    /// Passes a reacquirer to the other side, and records its call.
    case reacquires
    /// Calls the given closure twice, with a reacquirer each time.
    case answersTwice
    /// Never answers.
    case isSilent
    /// Signals an error when it should save or accommodate a deletion.
    case refuses
    /// Removes itself in the first callback that requires an answer, and does not answer.
    case leaves
  }

  package struct Refusal: Error, CustomStringConvertible {
    package let description = "not now"
  }

  package let presentedItemQueue = DispatchQueue(label: "recording-presenter")
  private let url: Mutex<URL?>
  private let manner: Manner
  private let lines = Mutex<[String]>([])
  private let meanwhile: @Sendable (String) -> Void

  /// - Parameter meanwhile: Called in each callback that requires an answer, before the answer.
  package init(
    _ path: String?, _ manner: Manner = .answers,
    meanwhile: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    url = Mutex(path.map { URL(filePath: $0) })
    self.manner = manner
    self.meanwhile = meanwhile
  }

  package var presentedItemURL: URL? { url.withLock { $0 } }

  package func move(to path: String?) { url.withLock { $0 = path.map { URL(filePath: $0) } } }

  /// The callbacks so far, one word each; paths as their last component.
  package var heard: [String] { lines.withLock { $0 } }

  package func forget() { lines.withLock { $0 = [] } }

  private func hear(_ line: String) { lines.withLock { $0.append(line) } }

  private func answer(_ line: String, _ answer: @escaping @Sendable ((any Error)?) -> Void) {
    hear(line)
    meanwhile(line)
    switch manner {
    case .answers, .reacquires: answer(nil)
    case .answersTwice:
      answer(nil)
      answer(nil)
    case .isSilent: return
    case .refuses: answer(Refusal())
    case .leaves: FileCoordinator.removeFilePresenter(self)
    }
  }

  private func relinquish(
    _ line: String, _ other: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    let reacquirer: @Sendable () -> Void = { self.hear("reacquired") }
    answer(line) { _ in
      other(self.manner == .reacquires || self.manner == .answersTwice ? reacquirer : nil)
    }
  }

  package func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    relinquish("reader", reader)
  }

  package func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    relinquish("writer", writer)
  }

  package func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    answer("save", completionHandler)
  }

  package func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    answer("deletion", completionHandler)
  }

  package func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    answer("deletion:\(url.lastPathComponent)", completionHandler)
  }

  package func presentedItemDidMove(to newURL: URL) { hear("moved:\(newURL.lastPathComponent)") }

  package func presentedItemDidChange() { hear("changed") }

  package func presentedSubitemDidAppear(at url: URL) { hear("appeared:\(url.lastPathComponent)") }

  package func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) {
    hear("moved:\(oldURL.lastPathComponent):\(newURL.lastPathComponent)")
  }

  package func presentedSubitemDidChange(at url: URL) { hear("changed:\(url.lastPathComponent)") }
}
