public import FoundationEssentials
import Synchronization
public import Wormhole
import WormholeSystem

/// Coordinates reading and writing of files and directories, inside a container or not, among
/// processes and among the objects of one process.
///
/// Like the original's NSFileCoordinator, with promises that it does not make:
/// - A writing accessor gets a private copy of the item. Its changes are published in one step when
///   it returns; nothing is published if it throws, or its process dies or is suspended.
/// - Readers do not wait for a writer that works on its copy, and never see half a change.
/// - Every wait has a deadline. A suspended process delays others for at most 50 ms, and a process
///   that does not end its access for at most its term. It then gets an error that names the
///   process that took over.
///
/// An accessor must use the URL that it gets. It may coordinate other items only if all are named
/// in one call; otherwise it may wait for its own item until the deadline.
///
/// Cheap to make; thread-safe; usable for any number of accesses, one after another or at once.
///
/// ```swift
/// try FileCoordinator().coordinate(writingItemAt: file, until: .now + .seconds(2)) { url in
///   var text = try String(contentsOf: url, encoding: .utf8)
///   text += "one more line\n"
///   try Data(text.utf8).write(to: url)        // published in one step when this returns
/// }
/// ```
public final class FileCoordinator: Sendable {
  /// The presenter that is not notified of this coordinator's accesses.
  public let filePresenter: (any FilePresenter)?
  /// What a publication survives.
  public let durability: Durability

  private let state: Mutex<State>

  private struct State {
    /// As it was set, or that of the presenter.
    var purposeIdentifier: String?
    /// Nil before it is used; then, without an identifier, one that no other coordinator has.
    var purpose: String?
    /// Whether the identifier was set; other coordinators may then have the same purpose.
    var isPurposeShared = false
    /// From before an access looks at an item until its end. While its accessor runs it has a
    /// session; before that, it can be cancelled. A table costs more than searching a few.
    var accesses: [(terms: AccessTerms, session: AccessSession?)] = []
    var prepared: [ObjectIdentifier: [PresenterDemand]] = [:]
    var hasEnded = false

    mutating func purposeInUse() -> String {
      let used = purpose ?? purposeIdentifier ?? "coordinator-" + Nonce.next()
      purpose = used
      return used
    }
  }

  /// How long an access waits by default: 10 seconds.
  public static let standardWait: Duration = .seconds(10)

  /// How long an accessor may take by default before others may take its access over: 60 seconds.
  /// One that takes longer keeps it until another access needs the item.
  public static let standardTerm: Duration = .seconds(60)

  /// Makes a coordinator.
  ///
  /// - Parameters:
  ///   - filePresenter: the presenter that coordinates; it is not notified of its own accesses.
  ///   - durability: with `.durable` the published changes are on the disk when the call returns;
  ///     the default is equivalent to an atomic save.
  public init(
    filePresenter: (any FilePresenter)? = nil, durability: Durability = .standard
  ) {
    self.filePresenter = filePresenter
    self.durability = durability
    let identifier = filePresenter.map {
      "presenter-\(Self.process)-\(ObjectIdentifier($0).hashValue)"
    }
    state = Mutex(State(purposeIdentifier: identifier))
  }

  private static let process = Nonce.next()

  /// The purpose of the accesses: accesses of one purpose in one process never wait for each other. If
  /// two of them change one item at the same time, the first is published, and the second throws
  /// `conflict`: no change is lost without an error. Accesses for replacing, which do not look at the
  /// item, replace the current item. Accesses of other processes are waited for, whatever their
  /// purpose.
  ///
  /// Initially unique for each coordinator, and equal for all coordinators of a presenter. Set it
  /// once, before the first access, to a non-empty string, and not for a coordinator that was made
  /// for a presenter. Anything else is an event of `Diagnostics`, and changes nothing.
  public var purposeIdentifier: String {
    get {
      state.withLock { $0.purposeInUse() }
    }
    set {
      let obstacle = state.withLock { state -> String? in
        guard !newValue.isEmpty else { return "it must not be empty" }
        guard filePresenter == nil else { return "the coordinator has the one of its presenter" }
        guard !state.isPurposeShared else { return "it was set before" }
        (state.purposeIdentifier, state.purpose) = (newValue, nil)
        state.isPurposeShared = true
        return nil
      }
      guard let obstacle else { return }
      Diagnostics.report(
        IgnoredArgument(
          "set the purpose identifier \"\(newValue)\" of a coordinator: \(obstacle); the coordinator "
            + "keeps the one that it has; make another coordinator"))
    }
  }

  /// Gives up every waiting access of this coordinator: its call throws `cancelled` within 50 ms,
  /// and its accessor is not run. A running accessor continues to its end. May be called on any
  /// thread; returns at once.
  public func cancel() {
    // Excludes: an accessor that begins between the look and the request.
    state.withLock { state in
      for access in state.accesses where access.session == nil { access.terms.cancel() }
    }
  }

  /// Like `cancel`, and every later access ends the same way, as with the original.
  package func cancelPermanently() {
    state.withLock { $0.hasEnded = true }
    cancel()
  }

  /// Announces that the item is about to be moved. No preparation is needed here: this does
  /// nothing, and exists for code written for the original.
  public func item(at oldURL: URL, willMoveTo newURL: URL) {}

  /// Reports that the accessor of an access `forMoving` has moved the item: presenters of the item,
  /// of its contents and of the directories above are notified.
  ///
  /// If one of the two is a private copy of this coordinator's accessor, it stands for its item,
  /// and presenters are notified when the accessor has returned and the copy is published. Accesses
  /// that wait for the item find it at its new place even without this call.
  public func item(at oldURL: URL, didMoveTo newURL: URL) {
    let (old, new) = (oldURL.path, newURL.path)
    // By bytes: Unicode calls some different paths equivalent.
    guard !old.utf8.elementsEqual(new.utf8) else { return }
    let sessions = state.withLock { $0.accesses.compactMap(\.session) }
    if sessions.contains(where: { $0.postponeMove(from: old, to: new) }) { return }
    PresenterConversation.reportMove(from: old, to: new, by: filePresenter)
  }
}

// MARK: For the calls

extension FileCoordinator {
  /// Begins an access, which this coordinator can cancel.
  func begin(
    _ requests: [AccessRequest], until deadline: ContinuousClock.Instant?, term: Duration
  ) throws -> AccessTerms {
    try state.withLock { state in
      guard !state.hasEnded else {
        throw WormholeError(
          .cancelled, "coordinate the item", path: requests.first?.path ?? "",
          reason: "the coordinator was cancelled")
      }
      // Excludes: one access copies the item before another publishes, and neither knows of it.
      for other in state.accesses { other.terms.meetCompanion() }
      let terms = AccessTerms(
        purpose: state.purposeInUse(),
        enclosing: Set(Self.running.map(\.terms.purpose)),
        hasCompanions: filePresenter != nil || state.isPurposeShared || !state.accesses.isEmpty,
        term: term, until: deadline ?? .now + Self.standardWait, durability: durability)
      state.accesses.append((terms, nil))
      return terms
    }
  }

  /// The lock for reading a file, if this is the whole access: it waits for no process, announces
  /// nothing and publishes nothing, so no other access of this coordinator has to know of it.
  func lockUndisturbed(_ url: URL, _ options: ReadingOptions) -> ItemLock? {
    guard filePresenter == nil, !options.contains(.forUploading), RegisteredPresenter.areNone,
      url.isFileURL,
      let purpose = state.withLock({ state in
        state.hasEnded ? nil : state.purposeInUse()
      })
    else { return nil }
    let request = AccessRequest.reading(url, options)
    let item = ItemPath(request.path)
    do throws(Errno) {
      guard let (lock, containers) = try ItemLock.undisturbed(item) else { return nil }
      lock.isUsed(for: purpose)
      return PresenterConversation.mustAsk(in: containers, beforeReading: item, request.kind)
        ? nil : lock
    } catch {
      // The acquisition finds out whether it is an error.
      return nil
    }
  }

  /// The accesses whose accessors call this.
  @TaskLocal private static var running: [(coordinator: FileCoordinator, terms: AccessTerms)] = []

  /// An item's URL in the private copy of an accessor that reads it again, in a nested access of
  /// the same purpose: it reads what it has written so far.
  func urlInCopy(of url: URL, _ options: ReadingOptions) -> URL? {
    let running = Self.running
    guard !running.isEmpty, url.isFileURL, !options.contains(.forUploading) else { return nil }
    let purpose = state.withLock { $0.purposeInUse() }
    // The acquisition reports the reason.
    guard let item = try? ItemPath.canonical(url.path, followingLink: true) else { return nil }
    for (coordinator, terms) in running.reversed() where terms.purpose == purpose {
      // A task that outlives the accessor no longer finds a session.
      let session = coordinator.state.withLock { $0.accesses.first { $0.terms === terms }?.session }
      if let place = session?.placeInCopy(of: item) {
        return URL(
          filePath: place.text,
          directoryHint: url.hasDirectoryPath ? .isDirectory : .inferFromPath)
      }
    }
    return nil
  }

  /// The place of an item that one of the accessors calling this has as a private copy; nil for any
  /// other item.
  package static func place(ofCopy path: String) -> String? {
    for (coordinator, terms) in running.reversed() {
      let session = coordinator.state.withLock { $0.accesses.first { $0.terms === terms }?.session }
      if let place = session?.published(path) { return place }
    }
    return nil
  }

  /// - Throws: `cancelled` if that was asked for while there was no session: no later call cancels it.
  private func begin(_ session: AccessSession, under terms: AccessTerms) throws {
    state.withLock { state in
      let index = state.accesses.firstIndex { $0.terms === terms }
      if let index { state.accesses[index].session = session }
    }
    if let access = session.accesses.first { try terms.check(access)() }
  }

  func end(_ terms: AccessTerms) {
    // Released outside the lock, because the end of a session ends its access here, too.
    let ended = state.withLock { state in
      state.accesses.firstIndex { $0.terms === terms }.map { state.accesses.remove(at: $0) }
    }
    withExtendedLifetime(ended) {}
  }

  /// Whether the presenters have already been asked for as much.
  func isPrepared(_ demand: PresenterDemand) -> Bool {
    state.withLock { $0.prepared.values.contains { $0.contains { $0.covers(demand) } } }
  }

  /// Presenters have been asked for this, and are not asked again before a preparation ends.
  ///
  /// - Parameter demands: nil at the end of the preparation.
  func setPrepared(_ demands: [PresenterDemand]?, by preparation: ObjectIdentifier) {
    state.withLock { $0.prepared[preparation] = demands }
  }

  /// Makes an access from a thread that may block.
  func access<Result>(
    _ requests: [AccessRequest], until deadline: ContinuousClock.Instant?, term: Duration,
    _ accessor: ([URL]) throws -> Result
  ) throws -> Result {
    try session(requests, until: deadline, term: term) { session in
      do {
        return try accessor(session.urls)
      } catch {
        // Without its copy, after a takeover, an accessor fails with its own error.
        throw session.accesses.lossBehind(error, isAny: true)
      }
    }
  }

  /// Makes an access from a thread that may block, for an accessor that uses its session.
  func session<Result>(
    _ requests: [AccessRequest], until deadline: ContinuousClock.Instant?, term: Duration,
    _ accessor: (AccessSession) throws -> Result
  ) throws -> Result {
    let terms = try begin(requests, until: deadline, term: term)
    defer { end(terms) }
    let session = try AccessOpening(requests, under: terms, for: self).run()
    let result: Result
    do {
      try begin(session, under: terms)
      result = try Self.$running.withValue(Self.running + [(self, terms)]) { try accessor(session) }
    } catch {
      session.abandon()
      throw error
    }
    try AccessClosing(session).run()
    return result
  }

  /// Makes an access from a task.
  func access<Result: Sendable>(
    _ requests: [AccessRequest], until deadline: ContinuousClock.Instant?, term: Duration,
    _ accessor: @Sendable ([URL]) async throws -> Result
  ) async throws -> Result {
    let terms = try begin(requests, until: deadline, term: term)
    defer { end(terms) }
    let session = try await runSuspending { [self] in
      AccessOpening(requests, under: terms, for: self)
    }
    let result: Result
    do {
      try begin(session, under: terms)
      result = try await Self.$running.withValue(Self.running + [(self, terms)]) {
        try await accessor(session.urls)
      }
    } catch {
      let cause = session.accesses.lossBehind(error, isAny: true)
      try await Blocking.run { session.abandon() }
      throw cause
    }
    try await runSuspending { AccessClosing(session) }
    return result
  }
}
