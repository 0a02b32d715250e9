public import FoundationEssentials
import Wormhole
import WormholeSystem

/// The forms that block the calling thread. Each has a counterpart for tasks, which blocks nothing.
extension FileCoordinator {
  /// Reads an item while no other access publishes it.
  ///
  /// - Parameters:
  ///   - url: a file or directory; neither it nor its directory need exist, except to upload it.
  ///   - options: how it is read.
  ///   - deadline: when to stop waiting for others; by default `standardWait` from now. One in the
  ///     past means: only if no other access is in the way.
  ///   - accessor: gets the item's URL: as given, or its new place if it was moved meanwhile; that
  ///     of the private copy if the caller is an accessor changing the item for the same purpose.
  /// - Returns: the accessor's result.
  /// - Throws: the accessor's error; the error of a presenter that was to save its changes;
  ///   `WormholeError.Code.timedOut` with the process in the way, `.cancelled`,
  ///   `.overtaken` for a directory that was replaced meanwhile, `.directoryMissing`, or an error
  ///   of the file system.
  /// - Complexity: ten system calls for a file that is read again within a second while no other
  ///   process uses it; otherwise about twelve, and two for each directory above.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func coordinate<Result>(
    readingItemAt url: URL, options: ReadingOptions = [],
    until deadline: ContinuousClock.Instant? = nil, byAccessor accessor: (URL) throws -> Result
  ) throws -> Result {
    if let url = urlInCopy(of: url, options) { return try accessor(url) }
    if let lock = lockUndisturbed(url, options) {
      return try withExtendedLifetime(lock) { try accessor(url) }
    }
    return try access([.reading(url, options)], until: deadline, term: Self.standardTerm) {
      try accessor($0[0])
    }
  }

  /// Changes an item while no other access does.
  ///
  /// - Parameters:
  ///   - url: a file or directory; it need not exist, but its parent directory must. A symbolic
  ///     link stands for its target, unless it is to be deleted or moved.
  ///   - options: how it is written; one option at a time.
  ///   - deadline: when to stop waiting for others; by default `standardWait` from now. The
  ///     publication at the end waits at least that long, whatever time the accessor took.
  ///   - term: how long the copy and the accessor may take before others may take the access over.
  ///   - accessor: gets the URL to write to: a private copy of the item with its name, or the item
  ///     itself `forMoving`, `inPlace` and for `contentIndependentMetadataOnly`. Removing the copy
  ///     removes the item; an unchanged copy publishes nothing. If it throws, nothing changes. If
  ///     it changes the item at the given URL instead, that is done at once, and stays.
  /// - Returns: the accessor's result, once its change is visible to all.
  /// - Throws: the accessor's error, unless it was overtaken, because its copy may then have been
  ///   gone; a presenter's error; `WormholeError.Code.timedOut` with the process in the
  ///   way, `.cancelled`, `.overtaken` with the process that took the access over, `.conflict` for
  ///   a directory in which others made changes since it was copied, `.directoryMissing`,
  ///   `.notAnItem`, or an error of the file system. Then nothing is published.
  /// - Complexity: a copy of the item (without reading it, if the file system can share content),
  ///   about sixty system calls, two for each directory above unless the item was accessed a moment
  ///   ago, and one rename.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func coordinate<Result>(
    writingItemAt url: URL, options: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil, term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: (URL) throws -> Result
  ) throws -> Result {
    try access([.writing(url, options)], until: deadline, term: term) {
      try accessor($0[0])
    }
  }

  /// Reads one item and changes another; see the forms for one item. Two such calls never wait for
  /// each other in a circle.
  ///
  /// - Throws: as the forms for one item. If a later item cannot be published, the earlier ones
  ///   already are.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func coordinate<Result>(
    readingItemAt readingURL: URL, options readingOptions: ReadingOptions = [],
    writingItemAt writingURL: URL, options writingOptions: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil, term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: (_ readingURL: URL, _ writingURL: URL) throws -> Result
  ) throws -> Result {
    try access(
      [.reading(readingURL, readingOptions), .writing(writingURL, writingOptions)], until: deadline,
      term: term
    ) { try accessor($0[0], $0[1]) }
  }

  /// Changes two items; see the form for one. An item that another process has moved to the place of
  /// the other one meanwhile is not followed: its accessor finds nothing at the old place.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func coordinate<Result>(
    writingItemAt url1: URL, options options1: WritingOptions = [],
    writingItemAt url2: URL, options options2: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil, term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: (_ url1: URL, _ url2: URL) throws -> Result
  ) throws -> Result {
    try access([.writing(url1, options1), .writing(url2, options2)], until: deadline, term: term) {
      try accessor($0[0], $0[1])
    }
  }
}

/// The forms for tasks. The accessor may suspend; everything that blocks runs elsewhere.
extension FileCoordinator {
  /// Reads an item while no other access publishes it; see the form without `async`. Cancelling the
  /// task ends the wait with `CancellationError`.
  public func coordinate<Result: Sendable>(
    readingItemAt url: URL, options: ReadingOptions = [],
    until deadline: ContinuousClock.Instant? = nil,
    byAccessor accessor: @Sendable (URL) async throws -> Result
  ) async throws -> Result {
    if let url = urlInCopy(of: url, options) { return try await accessor(url) }
    return try await access([.reading(url, options)], until: deadline, term: Self.standardTerm) {
      try await accessor($0[0])
    }
  }

  /// Changes an item while no other access does; see the form without `async`.
  public func coordinate<Result: Sendable>(
    writingItemAt url: URL, options: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil, term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: @Sendable (URL) async throws -> Result
  ) async throws -> Result {
    try await access([.writing(url, options)], until: deadline, term: term) {
      try await accessor($0[0])
    }
  }

  /// Reads one item and changes another; see the form without `async`.
  public func coordinate<Result: Sendable>(
    readingItemAt readingURL: URL, options readingOptions: ReadingOptions = [],
    writingItemAt writingURL: URL, options writingOptions: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil, term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: @Sendable (_ readingURL: URL, _ writingURL: URL) async throws -> Result
  ) async throws -> Result {
    try await access(
      [.reading(readingURL, readingOptions), .writing(writingURL, writingOptions)], until: deadline,
      term: term
    ) { try await accessor($0[0], $0[1]) }
  }

  /// Changes two items; see the form without `async`.
  public func coordinate<Result: Sendable>(
    writingItemAt url1: URL, options options1: WritingOptions = [],
    writingItemAt url2: URL, options options2: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil, term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: @Sendable (_ url1: URL, _ url2: URL) async throws -> Result
  ) async throws -> Result {
    try await access(
      [.writing(url1, options1), .writing(url2, options2)], until: deadline, term: term
    ) {
      try await accessor($0[0], $0[1])
    }
  }
}

extension FileCoordinator {
  /// Runs a long accessor, and checks whether it still has access.
  ///
  /// - Parameter kind: `.content` for a private copy that is published afterwards, as with
  ///   `writingItemAt`. `.locking` and `.sharing` for the item itself, for programs that cannot
  ///   work on a copy: nothing is published at the end, because changes in place are visible at
  ///   once, even incomplete ones. Such a program inherits the access (`ItemAccess.inheritance`).
  /// - Parameter term: how long the accessor may take before others may take the access over; nil:
  ///   as long as this process, or the program that inherited the access, runs.
  package func hold<Result>(
    itemAt url: URL, for kind: AccessKind, until deadline: ContinuousClock.Instant?,
    term: Duration?, while accessor: (URL, ItemAccess) throws -> Result
  ) throws -> Result {
    let request = AccessRequest(url: url, kind: kind)
    return try session(
      [request], until: deadline, term: term ?? LeaseDeclaration.whileRunning
    ) { try accessor($0.urls[0], $0.accesses[0]) }
  }
}

/// Announces many accesses at once, so that presenters are asked once for all of them.
extension FileCoordinator {
  /// Asks the presenters of many items to make way, before this same coordinator accesses the items
  /// one by one inside the accessor; for a directory, also its contents' presenters.
  ///
  /// The accessor does not have access to any item yet; while it runs, and until it has called its
  /// completion handler, these items' presenters are not asked again for as much. Name directories
  /// rather than their contents.
  ///
  /// - Parameters:
  ///   - readingURLs: the items to read.
  ///   - readingOptions: how; `resolvesSymbolicLink` is left out, which is an event of `Diagnostics`.
  ///   - writingURLs: the items to change.
  ///   - writingOptions: how; `forReplacing` is left out, which is an event of `Diagnostics`.
  ///   - deadline: when to stop waiting for presenters; by default `standardWait` from now, and
  ///     never longer for one presenter than its patience.
  ///   - accessor: gets a completion handler, to be called from any thread after the last access;
  ///     releasing it counts as a call.
  /// - Throws: the accessor's error; a presenter's error; `WormholeError`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func prepare<Result>(
    forReadingItemsAt readingURLs: [URL], options readingOptions: ReadingOptions = [],
    writingItemsAt writingURLs: [URL], options writingOptions: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil,
    byAccessor accessor: (_ completionHandler: @escaping @Sendable () -> Void) throws -> Result
  ) throws -> Result {
    let requests = requests(
      reading: readingURLs, readingOptions, writing: writingURLs, writingOptions)
    let preparation = try Preparation(for: self, requests, until: deadline)
    return try accessor { preparation.end() }
  }

  /// Asks an item's presenters for an access that waits for no other process, and calls a closure.
  package func prepareBriefly<Result>(
    itemAt url: URL, isShared: Bool, _ body: () throws -> Result
  ) throws -> Result {
    let request = isShared ? AccessRequest.reading(url, []) : .writing(url, [])
    let preparation = try Preparation(
      for: self, [request], until: nil, unseen: PresenterConversation.briefPatience)
    defer { preparation.end() }
    return try body()
  }

  /// The form for tasks: the accesses announced by the accessor are over when it returns.
  public func prepare<Result: Sendable>(
    forReadingItemsAt readingURLs: [URL], options readingOptions: ReadingOptions = [],
    writingItemsAt writingURLs: [URL], options writingOptions: WritingOptions = [],
    until deadline: ContinuousClock.Instant? = nil,
    byAccessor accessor: @Sendable () async throws -> Result
  ) async throws -> Result {
    let requests = requests(
      reading: readingURLs, readingOptions, writing: writingURLs, writingOptions)
    let preparation = try await Blocking.run { [self] in
      try Preparation(for: self, requests, until: deadline)
    }
    defer { preparation.end() }
    return try await accessor()
  }

  private func requests(
    reading readingURLs: [URL], _ readingOptions: ReadingOptions, writing writingURLs: [URL],
    _ writingOptions: WritingOptions
  ) -> [AccessRequest] {
    if readingOptions.contains(.resolvesSymbolicLink) || writingOptions.contains(.forReplacing) {
      Diagnostics.report(
        IgnoredArgument(
          "prepare for the accesses as asked: resolvesSymbolicLink and forReplacing have no meaning "
            + "before the accesses themselves, and were left out; give them to those"))
    }
    let (reading, writing) = (
      readingOptions.subtracting(.resolvesSymbolicLink), writingOptions.subtracting(.forReplacing)
    )
    return readingURLs.map { AccessRequest.reading($0, reading) }
      + writingURLs.map { AccessRequest.writing($0, writing) }
  }
}

/// Presenters that were asked on behalf of several later accesses.
final class Preparation: Sendable {
  private let coordinator: FileCoordinator
  private let conversation: PresenterConversation

  init(
    for coordinator: FileCoordinator, _ requests: [AccessRequest],
    until deadline: ContinuousClock.Instant?,
    unseen: Duration = PresenterConversation.patience
  ) throws {
    let demands = try requests.compactMap { request in
      try request.find().flatMap {
        request.presenterDemand(at: $0.place, coversContents: true)
      }
    }
    let terms = try coordinator.begin(requests, until: deadline, term: FileCoordinator.standardTerm)
    defer { coordinator.end(terms) }
    conversation = try PresenterConversation.begin(
      demands, for: coordinator.filePresenter, until: terms.deadline, under: terms,
      unseen: unseen)
    self.coordinator = coordinator
    coordinator.setPrepared(demands, by: ObjectIdentifier(self))
  }

  deinit { end() }

  func end() {
    coordinator.setPrepared(nil, by: ObjectIdentifier(self))
    conversation.finish(published: [:])
  }
}

/// An argument with no meaning where it was given; it was left out.
struct IgnoredArgument: Error, CustomStringConvertible {
  let description: String

  /// - Parameter refusal: what could not be done, why, and what to do, without "cannot".
  init(_ refusal: String) { description = "cannot " + refusal }
}
