public import FoundationEssentials
public import Wormhole

extension FileCoordinator {
  /// Registers a presenter: from now on it is asked before others use its item, and notified of
  /// their changes. It is retained until it is removed as often as it was added.
  ///
  /// An access that begins at the same moment may not ask it yet; register while reading the item
  /// under coordination, or read it afterwards.
  ///
  /// - Parameter presenter: if its item does not exist yet, the item is watched for; if it does not
  ///   have a URL yet, the URL is read after each of its own coordinated accesses.
  /// - Throws: an error with a sentence if the user's container for file coordination cannot be
  ///   used, or the directories above the item cannot be looked at.
  /// - Complexity: for a directory one look at each entry in it, at any depth, and one watch for
  ///   each directory; a descriptor for the item and one for its registration; a mailbox for all
  ///   presenters of the process in one container.
  public static func addFilePresenter(_ presenter: any FilePresenter) throws {
    try RegisteredPresenter.add(presenter)
  }

  /// Ends a registration: no callback begins after this returns, and no access waits for a running
  /// callback. May be called in a callback. A reacquirer that it has passed is still called.
  ///
  /// - Parameter presenter: has no effect if it is not registered.
  public static func removeFilePresenter(_ presenter: any FilePresenter) {
    RegisteredPresenter.remove(presenter)
  }

  /// Returns the process that published a file's current content through a coordinator, and when.
  ///
  /// It is read from an extended attribute of the file, which is set before the file replaces the
  /// item, and describes that file's content only. So it is nil after a program changed the file
  /// `inPlace` or without a coordinator, for a copy or a directory, and on a file system without
  /// extended attributes. It is the publisher's own claim, as for values. Its `peer` is nil.
  ///
  /// - Complexity: four system calls.
  public static func publisher(ofItemAt url: URL) -> Publisher? { ItemPublisher.of(url.path) }

  /// Returns the current path of a presenter's item, without links; nil if it has none, or is not registered.
  package static func itemPath(of presenter: any FilePresenter) -> String? {
    RegisteredPresenter.registered(presenter)?.path?.text
  }

  /// The registered presenters of this process, in no order.
  public static var filePresenters: [any FilePresenter] {
    RegisteredPresenter.all.map(\.presenter)
  }
}
