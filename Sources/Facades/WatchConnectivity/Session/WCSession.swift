import Dispatch
public import Foundation
import Synchronization
public import Wormhole
import WormholePeers

import class WormholeUserDefaults.KeyValueObservers

/// The session between a phone process and a watch process; source-compatible with Apple's.
///
/// Set a delegate, then `activate()`, on both sides. The delegate's methods and all reply and error
/// handlers are called on one serial background queue, one at a time, never inside another call of
/// this class. Every member exists on both sides, whatever `#if os(iOS)` says on Linux.
///
/// It has no mechanism of its own: a `PeerSession` named "phone", or after the watch, carries
/// everything, so `wormhole peer …` shows it, too. Waiting transfers outlive both processes.
///
/// In tests a subclass can stand in for it: every member of the original can be overridden. Its
/// `Sendable` is unchecked because it is open, like the original: its own properties are
/// `Sendable`, and a subclass is responsible for those that it adds.
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
open class WCSession: NSObject, @unchecked Sendable {
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
  private let setup: Mutex<Result<SessionSetup, WCError>?>
  /// The object over the session that lasts as long as the session does.
  let layer = Mutex<(any AnyObject & Sendable)?>(nil)

  /// - Parameter setup: nil for the one that `configure` or the environment sets.
  init(_ setup: SessionSetup?) {
    self.setup = Mutex(setup.map { .success($0) })
    state = Mutex(State())
  }

  /// A session for a test, which overrides what the code under test calls. The rest acts as in the
  /// session of a process that has no place. An app uses `WCSession.default`.
  public override init() {
    setup = Mutex(nil)
    state = Mutex(State())
    super.init()
  }

  // MARK: Where it is

  /// Sets the session's place and this process's side. Call it once, before the session is used. A
  /// call once the session has a valid place has no effect, and is an event of `Diagnostics`.
  /// Without a call the environment sets them: `WATCHCONNECTIVITY_ROLE` (phone or watch),
  /// `WORMHOLE_GROUP` or `WORMHOLE_CONTAINER`, and optionally `WATCHCONNECTIVITY_WATCH` and
  /// `WATCHCONNECTIVITY_REPLY_TIMEOUT` (seconds).
  ///
  /// - Parameters:
  ///   - role: this process's side.
  ///   - container: the container that both sides share.
  ///   - watchName: on the watch: its name. A watch that is not named "watch" must be paired first:
  ///     `wormhole peer pairing NAME`.
  ///   - replyTimeout: how long a message waits for its reply; 5 minutes by default.
  public static func configure(
    role: Role, container: SharedContainer, watchName: String = "watch",
    replyTimeout: Duration = .seconds(300)
  ) {
    let setup = Result {
      try SessionSetup(
        role: role, container: container, watchName: watchName, replyTimeout: replyTimeout)
    }.mapError { WCError($0, of: .activation) }
    let isSet = ofProcess.setup.withLock { known in
      // A place that is wrong or missing gives way: no session was used there.
      if case .success? = known { return false }
      known = setup
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
  /// If not, `activate()` reports the reason to the delegate. An incomplete or wrong environment is
  /// also an event of `Diagnostics`, once, because a program without a session mostly
  /// continues silently.
  open class func isSupported() -> Bool { WCSession.default.validSetup != nil }

  /// The one session of this process.
  ///
  /// In a call of a delegate, or of a handler that belongs to no actor, it is the session that
  /// calls. This differs only in tests, where a process may have several sessions.
  open class var `default`: WCSession { current }

  /// This process's side; nil without support. Apple's code asks `#if os(iOS)`.
  public var role: Role? { validSetup?.role }

  /// Where the session is; the environment is read once.
  func configured() throws(WCError) -> SessionSetup {
    let (result, isFirst) = setup.withLock { setup -> (Result<SessionSetup, WCError>, Bool) in
      if let setup { return (setup, false) }
      let result = Result {
        try SessionSetup(environment: ProcessInfo.processInfo.environment)
      }.mapError { WCError($0, of: .activation) }
      setup = result
      return (result, true)
    }
    if isFirst, case .failure(let error) = result { Self.complain(error) }
    return try result.get()
  }

  /// Reports why there is no session here; on standard error if the program has no handler, because
  /// it would be silent, and a forgotten role or delegate is the most frequent mistake.
  static func complain(_ error: WCError) {
    Diagnostics.report(error)
    guard Diagnostics.onEvent == nil else { return }
    // If it is closed, no one would read it.
    try? FileHandle.standardError.write(contentsOf: Data("WatchConnectivity: \(error)\n".utf8))
  }

  /// The session's place, if it was asked for before.
  var setupIfKnown: SessionSetup? {
    guard case .success(let setup) = setup.withLock({ $0 }) else { return nil }
    return setup
  }

  var validSetup: SessionSetup? {
    // Properties cannot report the error; `activate()` reports it to the delegate.
    try? configured()
  }

  // MARK: Delegate and state

  /// The object that receives everything that arrives; held weakly, as with Apple's.
  ///
  /// Dictionaries and files that arrive without a delegate wait until there is one.
  open var delegate: (any WCSessionDelegate)? {
    get { state.withLock { $0.delegate }.object }
    set {
      let reference = DelegateReference(newValue)
      state.withLock { $0.delegate = reference }
      guard newValue != nil else { return }
      queue.async { self.link?.receiveAgain() }
    }
  }

  /// The progress of the activation.
  open var activationState: WCSessionActivationState { state.withLock { $0.activation } }

  /// Begins the session, and notifies the delegate when the activation has ended: from then on it
  /// sends and receives, and everything that waited for this side is delivered.
  ///
  /// On an active session the delegate is called again. On an inactive session it takes effect as
  /// soon as everything received is delivered and the session is deactivated: nothing is lost.
  /// Without a delegate it only reports that, as an event of `Diagnostics`, and on standard error
  /// if nothing receives those.
  ///
  /// The delegate gets the error `sessionNotSupported` if the session's place is unknown, or
  /// `sessionNotActivated`, whose `failureReason` names the process that already has the session.
  /// That error comes after two seconds: the session does not wait until that process ends.
  open func activate() { beginSession() }

  // MARK: The other side

  /// On the phone: whether a paired watch is active; on the watch: whether it is paired.
  open var isPaired: Bool { ask(false) { _, pairing in pairing.isPaired } }

  /// On the phone: whether the active watch has the app, as its pairing says.
  open var isWatchAppInstalled: Bool { hasCounterpartApp }

  /// On the phone: whether the complication is on the active watch's face, as its pairing says.
  open var isComplicationEnabled: Bool {
    ask(false) { _, pairing in pairing.watchInQuestion?.isComplicationEnabled ?? false }
  }

  /// On the phone: how often `transferCurrentComplicationUserInfo` may still start the watch's app
  /// today (UTC); 0 while the complication is not enabled.
  open var remainingComplicationUserInfoTransfers: Int {
    ask(0) { setup, pairing in try pairing.remainingComplicationTransfers(in: setup) }
  }

  /// On the phone: a directory for the active watch's data, made at the first use; nil if no watch
  /// is active or the active watch does not have the app. The first `activate()` after the watch
  /// was unpaired, or its app removed, deletes it.
  open var watchDirectoryURL: URL? {
    ask(nil) { setup, pairing in
      guard let watch = pairing.activeWatch, watch.isAppInstalled else { return nil }
      return try WatchDirectory.url(of: watch.name, in: setup)
    }
  }

  /// On the watch: whether the phone has the app. It has, unless the watch is not paired, or
  /// `wormhole peer pairing phone --of WATCH --without-app` says otherwise.
  open var isCompanionAppInstalled: Bool { hasCounterpartApp }

  /// Always false: no process here is locked after a reboot.
  open var iOSDeviceNeedsUnlockAfterRebootForReachability: Bool { false }

  /// Whether a message would be delivered now: both this session and the counterpart's are
  /// activated, and the counterpart's process is not stopped. On the watch it is also true if a
  /// message would start the phone's app. A watch that is not active reaches no counterpart.
  ///
  /// The delegate learns every answer that differs from its last report. A stop of the counterpart's
  /// process, which has no event, is reported within a second even if this property is not read.
  open var isReachable: Bool {
    guard activationState == .activated, let link, let counterpart = link.counterpart else {
      return false
    }
    let isReachable = ask(false) { setup, pairing in
      guard try pairing.allows(counterpart) else { return false }
      return setup.accepts(try setup.peer.reachability(of: counterpart))
    }
    link.answered(isReachable: isReachable)
    return isReachable
  }

  // MARK: Sending

  /// Sends a dictionary at once. This form is for apps that wrap the session in their own protocol,
  /// and for subclasses, which override it; the form for handlers of any kind calls it, too. Its
  /// handlers are called on the delegate's queue, wherever they are written.
  @_disfavoredOverload
  open func sendMessage(
    _ message: [String: Any], replyHandler: (([String: Any]) -> Void)?,
    errorHandler: ((any Error) -> Void)? = nil
  ) {
    send(.init(replyHandler, errorHandler, Payload.objects)) {
      try Payload.value(message, maximumBytes: Payload.maximumMessageBytes)
    }
  }

  /// Sends data to the counterpart at once; see `sendMessage`. At most 65,536 bytes.
  @_disfavoredOverload
  open func sendMessageData(
    _ data: Data, replyHandler: ((Data) -> Void)?, errorHandler: ((any Error) -> Void)? = nil
  ) {
    send(.init(replyHandler, errorHandler, \.dataValue)) { try Payload.value(data) }
  }

  /// Replaces the counterpart's context: it gets the latest one, once, when it runs. Equal content
  /// is not delivered again.
  ///
  /// - Throws: `WCError.payloadUnsupportedTypes`, `.payloadTooLarge` beyond 262,144 bytes,
  ///   `.sessionNotActivated`, `.sessionInactive`, `.deviceNotPaired`, `.watchAppNotInstalled`, or
  ///   `.insufficientSpace`.
  open func updateApplicationContext(_ applicationContext: [String: Any]) throws {
    try replaceContext(applicationContext)
  }

  /// The last context that this side sent with `updateApplicationContext`, in any of its processes;
  /// empty if it never sent one. Costs reading a file, as does `receivedApplicationContext`.
  open var applicationContext: [String: Any] {
    Diagnostics.reporting(otherwise: [:]) { try context { try $0.context(for: $1) } }
  }

  /// The last context that the counterpart sent, in any of its processes; empty if it never sent
  /// one. It may be newer than the one that the delegate was given; then the delegate gets it next.
  open var receivedApplicationContext: [String: Any] {
    Diagnostics.reporting(otherwise: [:]) { try context { try $0.context(from: $1) } }
  }

  /// Sends a dictionary that is certain to be delivered, in the order of sending, whenever the
  /// counterpart runs.
  ///
  /// It is in the container when this returns, and outlives both processes. A refusal
  /// (`sessionNotActivated`, `sessionInactive`, `deviceNotPaired`, `watchAppNotInstalled`,
  /// `payloadUnsupportedTypes`, `payloadTooLarge` beyond 65,536 bytes, `insufficientSpace`) goes
  /// to the delegate's `session(_:didFinish:error:)`, and the transfer is not listed as outstanding.
  @discardableResult
  open func transferUserInfo(_ userInfo: [String: Any] = [:]) -> WCSessionUserInfoTransfer {
    transfer(userInfo)
  }

  /// Sends a dictionary for the watch's complication, and starts the watch's app if it registered
  /// to be started for urgent work: 50 times a day (UTC) per watch, while its complication is
  /// enabled. Beyond that, and on a watch, it acts like `transferUserInfo`.
  ///
  /// It becomes the *current* one; the previous one is still delivered, in its turn.
  @discardableResult
  open func transferCurrentComplicationUserInfo(
    _ userInfo: [String: Any] = [:]
  ) -> WCSessionUserInfoTransfer {
    transfer(userInfo) { route in
      guard let complications = route.link.complications,
        route.pairing.activeWatch?.isComplicationEnabled == true
      else { return false }
      return try complications.use()
    }
  }

  /// The dictionaries that are not yet delivered, failed or cancelled, even those of an earlier
  /// process of this side; in the order of sending. Empty while the session is not activated.
  open var outstandingUserInfoTransfers: [WCSessionUserInfoTransfer] {
    link?.userInfoTransfers.all ?? []
  }

  /// Sends a file that is certain to be delivered, whenever the counterpart runs, after the files
  /// sent before it.
  ///
  /// Returns at once; the content is copied into the container, so it must not be changed or
  /// removed before `progress` is complete. A refusal (as for `transferUserInfo`, and
  /// `fileAccessDenied` if the URL names no readable regular file, `invalidParameter` if it is not
  /// a file URL) goes to the delegate's `session(_:didFinish:error:)`.
  @discardableResult
  open func transferFile(_ file: URL, metadata: [String: Any]?) -> WCSessionFileTransfer {
    transfer(file, metadata, options: .init())
  }

  /// The files that are not yet delivered, failed or cancelled; as `outstandingUserInfoTransfers`.
  open var outstandingFileTransfers: [WCSessionFileTransfer] { link?.fileTransfers.all ?? [] }

  /// Whether a dictionary or a file has arrived that the delegate does not have yet. Costs a look
  /// at both queues. Contexts and messages do not count: contexts can be read at any time, and
  /// senders wait for messages.
  open var hasContentPending: Bool {
    Diagnostics.reporting(otherwise: false) { try link?.hasContentPending() ?? false }
  }

  /// The link of the current activation; nil while there is none.
  var link: SessionLink? { state.withLock { $0.link } }
}
