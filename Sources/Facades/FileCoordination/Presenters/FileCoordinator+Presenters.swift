extension FileCoordinator {
  /// Registers a presenter: from now on it is asked before others use its item, and hears what they
  /// did to it. It is retained until it is removed as often as it was added.
  ///
  /// An access that begins in the same moment may not ask it any more; register while reading the item
  /// under coordination, or read it afterwards.
  ///
  /// - Parameter presenter: an item that does not exist yet is watched for; one that has no URL yet
  ///   is asked for it after each coordinated access of its own.
  /// - Throws: an error with a sentence when the user's container for file coordination cannot be
  ///   used, or the directories above the item may not be looked at.
  /// - Complexity: for a directory one look at each entry in it, at any depth, and one watch for
  ///   each directory; a descriptor for the item and one for its registration; a mailbox for all
  ///   presenters of the process in one container.
  public static func addFilePresenter(_ presenter: any FilePresenter) throws {
    try PresenterRegistry.shared.add(presenter)
  }

  /// Ends a registration: no callback begins after this returns, and no access waits for one that has
  /// begun. May be called in a callback. A reacquirer that it has handed in is still called.
  ///
  /// - Parameter presenter: one that is not registered is left alone.
  public static func removeFilePresenter(_ presenter: any FilePresenter) {
    PresenterRegistry.shared.remove(presenter)
  }

  /// The registered presenters of this process, in no order.
  public static var filePresenters: [any FilePresenter] {
    PresenterRegistry.shared.all.map(\.presenter)
  }
}
