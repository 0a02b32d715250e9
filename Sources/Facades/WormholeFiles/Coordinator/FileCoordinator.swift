// `FileCoordinationError`; the targets are apart so that the compiler keeps claims from presenters.
public import FoundationEssentials
import Synchronization
public import Wormhole
import WormholeSystem

/// Coordinates reading and writing of files and directories, inside a container or not, among
/// processes and among the objects of one.
///
/// After the original's NSFileCoordinator, with promises that it does not make:
/// - A writing accessor gets a private copy of the item. What it leaves there is published in one step
///   when it returns; nothing is when it throws, or its process dies or is suspended.
/// - Readers do not wait for a writer that works on its copy, and never see half a change.
/// - Every wait has a deadline. A process that is suspended delays others for no longer than 50 ms,
///   one that does not end its access no longer than its term. It then gets an error with the process
///   that overtook it.
///
/// An accessor must use the URL that it is given. It may coordinate other items only if it names
/// them all in one call, or waits for its own item until the deadline.
///
/// Cheap to make; thread-safe; good for any number of accesses, one after the other or at once.
///
/// ```swift
/// try FileCoordinator().coordinate(writingItemAt: file, until: .now + .seconds(2)) { url in
///   var text = try String(contentsOf: url, encoding: .utf8)
///   text += "one more line\n"
///   try Data(text.utf8).write(to: url)        // published in one step when this returns
/// }
/// ```
public final class FileCoordinator: Sendable {
  /// The presenter that hears nothing of this coordinator's accesses.
  public let filePresenter: (any FilePresenter)?
  /// What a publication survives.
  public let durability: Durability

  private let state: Mutex<State>

  private struct State {
    var purpose: String
    var isPurposeSet: Bool
    /// Whether other coordinators may have the same one.
    var isPurposeShared = false
    /// From before an access looks at an item until its end. While its accessor runs it has a session;
    /// before, it can be cancelled.
    var accesses: [ObjectIdentifier: (terms: AccessTerms, session: AccessSession?)] = [:]
    var prepared: [String: Int] = [:]
  }

  /// How long an access is waited for if its caller does not say: 10 seconds.
  public static let standardWait: Duration = .seconds(10)

  /// How long an accessor may take, if its caller does not say, before others may take its access
  /// over: 60 seconds. One that takes longer keeps it as long as no other access needs the item.
  public static let standardTerm: Duration = .seconds(60)

  /// Makes a coordinator.
  ///
  /// - Parameters:
  ///   - filePresenter: the presenter that coordinates; it hears nothing of its own accesses.
  ///   - durability: with `.durable` what was published is on the disk when the call returns; the
  ///     default is what an atomic save gives.
  public init(
    filePresenter: (any FilePresenter)? = nil, durability: Durability = .standard
  ) {
    self.filePresenter = filePresenter
    self.durability = durability
    let purpose =
      filePresenter.map { "presenter-\(Self.process)-\(ObjectIdentifier($0).hashValue)" }
      ?? ClaimName.newPurposeIdentifier()
    state = Mutex(State(purpose: purpose, isPurposeSet: filePresenter != nil))
  }

  private static let process = Nonce.next()

  /// What the accesses are for: those of one purpose never wait for each other, even across
  /// processes. Of two that change one item at the same time the first one is published, and the
  /// second one throws `conflict`: no change is lost without an error. Accesses for replacing, which do
  /// not look at the item, replace the current item.
  ///
  /// Unique for each coordinator at first, and the same for all coordinators of a presenter. Set it
  /// once, before the first access, to a string that is not empty, and not for a coordinator that
  /// was made for a presenter: anything else is a programming error.
  public var purposeIdentifier: String {
    get { state.withLock { $0.purpose } }
    set {
      precondition(!newValue.isEmpty, "a purpose identifier must not be empty")
      state.withLock { state in
        precondition(
          !state.isPurposeSet, "a purpose identifier is set once, and not of a presenter")
        state.purpose = newValue
        state.isPurposeSet = true
        state.isPurposeShared = true
      }
    }
  }

  /// Gives up every access of this coordinator that is being waited for: its call throws `cancelled`
  /// within 50 ms, and its accessor is not run. An accessor that runs goes on to its end. Any thread
  /// may call this; it returns at once.
  public func cancel() {
    let accesses = state.withLock { Array($0.accesses.values) }
    for access in accesses where access.session == nil { access.terms.cancel() }
  }

  /// Says that the item is about to be moved. Nothing need be prepared for that here: this does
  /// nothing, and is for code that was written for the original.
  public func item(at oldURL: URL, willMoveTo newURL: URL) {}

  /// Says that the item was moved by the accessor of an access `forMoving`: presenters of the item, of
  /// its contents and of the directories above are notified.
  ///
  /// If one of the two is a private copy that this coordinator's accessor was given, it stands for
  /// its item, and presenters are notified when the accessor has returned and the copy is published.
  /// Accesses that wait for the item find it at its new place without this, too.
  public func item(at oldURL: URL, didMoveTo newURL: URL) {
    guard oldURL.path != newURL.path else { return }
    let (old, new) = (oldURL.path, newURL.path)
    let sessions = state.withLock { $0.accesses.values.compactMap(\.session) }
    if sessions.contains(where: { $0.postponeMove(from: old, to: new) }) { return }
    PresenterConversation.tellMoved(from: old, to: new, by: filePresenter)
  }
}

// MARK: For the calls

extension FileCoordinator {
  /// Begins an access, which this coordinator can cancel.
  private func begin(until deadline: ContinuousClock.Instant?, term: Duration) -> AccessTerms {
    state.withLock { state in
      // Excludes: an access that copies the item before another one publishes, and neither knows of it.
      for other in state.accesses.values { other.terms.meetCompanion() }
      let terms = AccessTerms(
        purpose: ClaimName.purpose(of: state.purpose), isPurposeShared: state.isPurposeShared,
        hasCompanions: filePresenter != nil || state.isPurposeShared || !state.accesses.isEmpty,
        term: term, until: deadline ?? .now + Self.standardWait, durability: durability)
      state.accesses[ObjectIdentifier(terms)] = (terms, nil)
      return terms
    }
  }

  private func begin(_ session: AccessSession, under terms: AccessTerms) {
    state.withLock { $0.accesses[ObjectIdentifier(terms)]?.session = session }
  }

  private func end(_ terms: AccessTerms) {
    _ = state.withLock { $0.accesses.removeValue(forKey: ObjectIdentifier(terms)) }
  }

  /// Paths whose presenters have been asked already.
  var prepared: Set<String> { state.withLock { Set($0.prepared.keys) } }

  /// Presenters of these items have been asked, and are not asked again.
  func setPrepared(_ paths: [String], _ isPrepared: Bool) {
    state.withLock { state in
      for path in paths {
        let count = state.prepared[path, default: 0] + (isPrepared ? 1 : -1)
        state.prepared[path] = count > 0 ? count : nil
      }
    }
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
        // Without its copy, because that was taken over, an accessor fails with an error of its own.
        throw session.accesses.lossBehind(error, isAny: true)
      }
    }
  }

  /// Makes an access from a thread that may block, for an accessor that knows of it.
  func session<Result>(
    _ requests: [AccessRequest], until deadline: ContinuousClock.Instant?, term: Duration,
    _ accessor: (AccessSession) throws -> Result
  ) throws -> Result {
    let terms = begin(until: deadline, term: term)
    defer { end(terms) }
    let session = try AccessOpening(requests, under: terms, for: self).run()
    begin(session, under: terms)
    let result: Result
    do {
      result = try accessor(session)
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
    let terms = begin(until: deadline, term: term)
    defer { end(terms) }
    let session = try await runSuspending { [self] in
      AccessOpening(requests, under: terms, for: self)
    }
    begin(session, under: terms)
    let result: Result
    do {
      result = try await accessor(session.urls)
    } catch {
      let cause = session.accesses.lossBehind(error, isAny: true)
      try await Blocking.run { session.abandon() }
      throw cause
    }
    try await runSuspending { AccessClosing(session) }
    return result
  }
}
