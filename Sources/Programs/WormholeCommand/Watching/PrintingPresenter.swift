import Dispatch
import FileCoordination
import FoundationEssentials
import Synchronization
import SystemCalls

/// The presenter of `wormhole watch`: it answers every question at once, and adds it to a backlog.
final class PrintingPresenter: FilePresenter {
  let presentedItemQueue = DispatchQueue(label: "wormhole.watch")
  private let place: Mutex<URL>
  private let backlog: Backlog<PresenterEvent>

  /// - Throws: `Errno` when the directories above the item may not be searched.
  init(_ file: String, _ backlog: Backlog<PresenterEvent>) throws(Errno) {
    place = Mutex(try Self.resolved(file))
    self.backlog = backlog
  }

  var presentedItemURL: URL? { place.withLock { $0 } }

  /// The item by the path that the kernel gives it, so that paths within it can be made relative. A
  /// link is followed, and an item that does not exist yet keeps the path of the command line.
  private static func resolved(_ file: String) throws(Errno) -> URL {
    let url = URL(filePath: file)
    if let directory = try place(ofDirectory: url) { return directory }
    let parent = try place(ofDirectory: url.deletingLastPathComponent())
    return parent?.appending(component: url.lastPathComponent) ?? url
  }

  /// - Returns: nil where there is no directory.
  private static func place(ofDirectory url: URL) throws(Errno) -> URL? {
    do throws(Errno) {
      let open = try FileDescriptor.open(
        url.path.isEmpty ? "." : url.path, [.pathOnly, .directory])
      return URL(filePath: try linkTarget("/proc/self/fd/\(open.rawValue)"))
    } catch {
      guard error == .noSuchFile || error == .notDirectory else { throw error }
      return nil
    }
  }

  /// A path within the item; absolute if it is not.
  private func relative(_ url: URL) -> String {
    let prefix = place.withLock { $0.path } + "/"
    return url.path.hasPrefix(prefix) ? String(url.path.dropFirst(prefix.count)) : url.path
  }

  // MARK: Questions

  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) {
    backlog.add(.relinquish(.reader))
    reader { [backlog] in backlog.add(.reacquire(.reader)) }
  }

  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) {
    backlog.add(.relinquish(.writer))
    writer { [backlog] in backlog.add(.reacquire(.writer)) }
  }

  func savePresentedItemChanges(completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
    backlog.add(.save)
    completionHandler(nil)
  }

  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    backlog.add(.deleting)
    completionHandler(nil)
  }

  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    backlog.add(.subitemDeleting(relative(url)))
    completionHandler(nil)
  }

  // MARK: Events

  func presentedItemDidMove(to newURL: URL) {
    place.withLock { $0 = newURL }
    backlog.add(.moved(to: newURL.path))
  }

  func presentedItemDidChange() { backlog.add(.changed) }

  func presentedSubitemDidAppear(at url: URL) { backlog.add(.subitemAppeared(relative(url))) }

  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) {
    backlog.add(.subitemMoved(relative(oldURL), to: relative(newURL)))
  }

  func presentedSubitemDidChange(at url: URL) { backlog.add(.subitemChanged(relative(url))) }
}
