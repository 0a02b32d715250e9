public import FoundationEssentials
import Synchronization
import Wormhole
import WormholeSystem

/// Announces many accesses at once, so that presenters are asked once for all of them.
extension FileCoordinator {
  /// Asks the presenters of many items to make way, before this same coordinator accesses the items
  /// one by one inside the accessor.
  ///
  /// The accessor does not have access to any item yet; while it runs, and until it has called its
  /// completion handler, presenters of these items are not asked again. Name directories rather
  /// than their contents.
  ///
  /// - Parameters:
  ///   - readingURLs: the items to read.
  ///   - readingOptions: how; `resolvesSymbolicLink` is meaningless here.
  ///   - writingURLs: the items to change.
  ///   - writingOptions: how; `forReplacing` is meaningless here.
  ///   - deadline: when to stop waiting for presenters; by default `standardWait` from now, and
  ///     never longer for one presenter than its patience.
  ///   - accessor: gets a completion handler, to be called from any thread after the last access;
  ///     releasing it counts as a call.
  /// - Throws: the accessor's error; a presenter's error; `FileCoordinationError`.
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

  /// The form for tasks: the accesses that the accessor announced are over when it returns.
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
    precondition(
      !readingOptions.contains(.resolvesSymbolicLink) && !writingOptions.contains(.forReplacing),
      "preparing takes neither resolvesSymbolicLink nor forReplacing")
    return readingURLs.map { AccessRequest.reading($0, readingOptions) }
      + writingURLs.map { AccessRequest.writing($0, writingOptions) }
  }
}

/// Presenters that were asked on behalf of several later accesses.
final class Preparation: Sendable {
  private let coordinator: FileCoordinator
  private let paths: [String]
  private let conversation: Mutex<PresenterConversation?>

  init(
    for coordinator: FileCoordinator, _ requests: [AccessRequest],
    until deadline: ContinuousClock.Instant?
  ) throws {
    var demands: [PresenterDemand] = []
    var paths: [String] = []
    for request in requests {
      let location = try request.find().place
      paths.append(location.text)
      demands += request.presenterDemands(at: location)
    }
    let conversation = try PresenterConversation.begin(
      demands, for: coordinator.filePresenter,
      until: deadline ?? .now + FileCoordinator.standardWait)
    self.coordinator = coordinator
    self.paths = paths
    self.conversation = Mutex(conversation)
    coordinator.setPrepared(paths, true)
  }

  deinit { end() }

  func end() {
    guard let conversation = conversation.withLock({ $0.take() }) else { return }
    coordinator.setPrepared(paths, false)
    conversation.finish(published: [:])
  }
}
