import Dispatch
public import Foundation
import Synchronization
public import Wormhole
import WormholePeers

import class SharedUserDefaults.KeyValueObservers

/// The session between a phone process and a watch process; source-compatible with Apple's.
///
/// Set a delegate, then `activate()`, on both sides. The delegate's methods and all reply and error
/// handlers are called on one serial background queue, one at a time, never inside another call of
/// this class. Every member exists on both sides, whatever `#if os(iOS)` says on Linux.
///
/// It has no mechanism of its own: a `PeerSession` named "phone", or after the watch, carries
/// everything, so `wormhole peer …` shows it, too. Transfers that wait outlive both processes.
///
/// Its properties are observed with `observe(_:options:changeHandler:)`, and the delegate learns
/// every change.
///
/// ```swift
/// final class Link: NSObject, WCSessionDelegate {
///   func session(
///     _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
///     error: (any Error)?
///   ) {
///     session.transferUserInfo(["film": "Metropolis"])
///   }
/// }
/// let link = Link()
/// WCSession.default.delegate = link
/// WCSession.default.activate()
/// ```
public final class WCSession: NSObject, Sendable {
  /// The side that a process is.
  ///
  /// ```swift
  /// print(WCSession.default.role == .phone ? "this is the phone" : "this is the watch, or nothing")
  /// ```
  public enum Role: String, Sendable {
    /// The side that runs on an iPhone on Apple's platforms.
    case phone
    /// The side that runs on a watch on Apple's platforms.
    case watch
  }

  /// The queue of all calls of the app's delegate and handlers.
  let queue = DispatchQueue(label: "WatchConnectivity.session")
  let state: Mutex<State>
  let observers = KeyValueObservers(of: WCSession.observable)
  let courses = TransferCourses()
  /// Nil until `configure` or the environment sets it.
  private let place: Mutex<Result<SessionPlace, WCError>?>
  /// The object over the session that lasts as long as the session does.
  let layer = Mutex<(any AnyObject & Sendable)?>(nil)

  /// - Parameter place: nil for the place that `configure` or the environment sets.
  init(_ place: SessionPlace?) {
    self.place = Mutex(place.map { .success($0) })
    state = Mutex(State())
  }

  // MARK: Where it is

  /// Sets the place of the session and the side of this process; call it once, before the session
  /// is used: a later call has no effect, and is an event of `Diagnostics`. Without a call the environment sets them: `WATCHCONNECTIVITY_ROLE` (phone or watch),
  /// `WORMHOLE_GROUP` or `WORMHOLE_CONTAINER`, and optionally `WATCHCONNECTIVITY_WATCH` and
  /// `WATCHCONNECTIVITY_REPLY_TIMEOUT` (seconds).
  ///
  /// - Parameters:
  ///   - role: the side of this process.
  ///   - container: the container that both sides share.
  ///   - watchName: on the watch: its name. A watch that is not named "watch" must be paired first:
  ///     `wormhole pairing add NAME`.
  ///   - replyTimeout: how long a message waits for its reply; 5 minutes by default.
  public static func configure(
    role: Role, container: SharedContainer, watchName: String = "watch",
    replyTimeout: Duration = .seconds(300)
  ) {
    let place = Result {
      try SessionPlace(
        role: role, container: container, watchName: watchName, replyTimeout: replyTimeout)
    }.mapError { WCError($0, of: .activation) }
    let isSet = ofProcess.place.withLock { known in
      // A place that is wrong or missing gives way: no session was used there.
      if case .success? = known { return false }
      known = place
      return true
    }
    if isSet { return }
    complain(
      WCError(
        .invalidParameter,
        reason:
          "WCSession.configure has no effect, because the session has its place already: call it "
          + "once, before the session is used; in tests, after a reset."))
  }

  /// Whether a session can be used here: its place is known, and its container can be opened.
  ///
  /// If not, `activate()` reports the reason to the delegate. An environment that is incomplete or
  /// wrong is also an event of `Diagnostics`, once, because a program without a session mostly
  /// continues silently.
  public static func isSupported() -> Bool { WCSession.default.knownPlace != nil }

  /// The side of this process; nil without support. Apple's code asks `#if os(iOS)`.
  public var role: Role? { knownPlace?.role }

  /// Where the session is; the environment is read once.
  func placed() throws(WCError) -> SessionPlace {
    let (result, isFirst) = place.withLock { place -> (Result<SessionPlace, WCError>, Bool) in
      if let place { return (place, false) }
      let result = Result {
        try SessionPlace(environment: ProcessInfo.processInfo.environment)
      }.mapError { WCError($0, of: .activation) }
      place = result
      return (result, true)
    }
    if isFirst, case .failure(let error) = result { Self.complain(error) }
    return try result.get()
  }

  /// Reports that there is no session here; on standard error if the program has no handler, because it would
  /// be silent, and a forgotten role is the most frequent mistake.
  private static func complain(_ error: WCError) {
    Diagnostics.report(error)
    guard Diagnostics.onEvent == nil else { return }
    // If it is closed, nobody would read it.
    try? FileHandle.standardError.write(contentsOf: Data("WatchConnectivity: \(error)\n".utf8))
  }

  /// The place of the session, if it was asked before.
  var placeIfKnown: SessionPlace? {
    guard case .success(let place) = place.withLock({ $0 }) else { return nil }
    return place
  }

  var knownPlace: SessionPlace? {
    // Properties cannot report the error; `activate()` reports it to the delegate.
    try? placed()
  }

  // MARK: Delegate and state

  /// The object that receives everything that arrives; held weakly, as with Apple's.
  ///
  /// Dictionaries and files that arrive without a delegate wait until there is one.
  public var delegate: (any WCSessionDelegate)? {
    get { state.withLock { $0.delegate }.object }
    set {
      let reference = DelegateReference(newValue)
      state.withLock { $0.delegate = reference }
      guard newValue != nil else { return }
      queue.async { self.link?.receiveAgain() }
    }
  }

  /// The progress of the activation.
  public var activationState: WCSessionActivationState { state.withLock { $0.activation } }

  /// The link of the current activation; nil while there is none.
  var link: SessionLink? { state.withLock { $0.link } }
}

extension WCSession {
  /// The state of a session.
  struct State {
    var delegate = DelegateReference(nil)
    var activation = WCSessionActivationState.notActivated
    /// `activate()` was called and has not completed.
    var isActivating = false
    /// `activate()` was called on an inactive session: it takes effect as soon as possible.
    var activatesAgain = false
    var link: SessionLink?
    /// The work under way that changes the link, by number.
    var works: [Int: Task<Void, Never>] = [:]
    var nextWork = 0
    /// The session was ended permanently, and another one replaces it.
    var hasEnded = false
  }

  /// A delegate is any object, which Swift cannot know to be safe on our queue.
  // It is only ever called on the session's serial queue, as its documentation says: code written
  // for Apple's framework relies on that, and is not Sendable. The reference itself is never changed.
  struct DelegateReference: @unchecked Sendable {
    private(set) weak var object: (any WCSessionDelegate)?
    init(_ object: (any WCSessionDelegate)?) { self.object = object }
  }
}
