public import FoundationEssentials
import Synchronization
import Wormhole
import WormholeSystem

/// Announcing many accesses at once, so that presenters are asked once for all of them.
extension FileCoordinator {
  /// Asks the presenters of many items to make way, before the accesses themselves are made one by
  /// one, with this same coordinator, inside the accessor.
  ///
  /// The accessor does not have access to anything yet; while it runs, and until it has called its
  /// completion handler, presenters of these items are not asked again. Name directories rather than
  /// what is in them.
  ///
  /// - Parameters:
  ///   - readingURLs: what will be read.
  ///   - readingOptions: how; `resolvesSymbolicLink` is meaningless here.
  ///   - writingURLs: what will be changed.
  ///   - writingOptions: how; `forReplacing` is meaningless here.
  ///   - deadline: until when to wait for presenters; by default `standardWait` from now, and never
  ///     longer for one presenter than its patience.
  ///   - accessor: gets a completion handler, to be called from any thread when all is done; if it is
  ///     dropped, that counts as called.
  /// - Throws: what the accessor throws; what a presenter signalled; `FileCoordinationError`.
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

  /// The same for tasks: what the accessor announced is over when it returns.
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

/// Presenters that have been asked on behalf of several accesses to come.
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
