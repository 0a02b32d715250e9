import Dispatch
import FileCoordination
import FoundationEssentials
import Synchronization
import SystemCalls

/// The presenter of `wormhole watch`: in nobody's way, it answers everything at once and notes it.
final class PrintingPresenter: FilePresenter {
  let presentedItemQueue = DispatchQueue(label: "wormhole.watch")
  private let place: Mutex<URL>
  private let backlog: PresenterBacklog

  /// - Throws: `Errno` when the directories above the item may not be looked at.
  init(_ file: String, _ backlog: PresenterBacklog) throws(Errno) {
    place = Mutex(try Self.resolved(file))
    self.backlog = backlog
  }

  var presentedItemURL: URL? { place.withLock { $0 } }

  /// The item by the path that the kernel knows it by, so that what is in it can be told relative to
  /// it. A link is itself the item, and what does not exist yet stays as it was written.
  private static func resolved(_ file: String) throws(Errno) -> URL {
    let url = URL(filePath: file)
    let isDirectory = [".", ".."].contains(url.lastPathComponent) || url.lastPathComponent == "/"
    let directory = isDirectory ? url : url.deletingLastPathComponent()
    do throws(Errno) {
      let open = try FileDescriptor.open(
        directory.path.isEmpty ? "." : directory.path, [.pathOnly, .directory])
      let path = URL(filePath: try linkTarget("/proc/self/fd/\(open.rawValue)"))
      return isDirectory ? path : path.appending(component: url.lastPathComponent)
    } catch {
      guard error == .noSuchFile || error == .notDirectory else { throw error }
      return url
    }
  }

  /// A path within the item; absolute if it is not.
  private func relative(_ url: URL) -> String {
    let prefix = place.withLock { $0.path } + "/"
    return url.path.hasPrefix(prefix) ? String(url.path.dropFirst(prefix.count)) : url.path
  }

  // MARK: Asked

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

  // MARK: Told

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
