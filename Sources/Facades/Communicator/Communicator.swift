public import Foundation
internal import WatchConnectivity

/// The connection to the counterpart: from the phone process to the watch process, and back.
///
/// The first access to `shared` activates the session; so does the first `observe` of any type.
/// Register observers first: messages that arrived before this process started are delivered right
/// after activation.
///
/// On Linux one module serves both sides. Members that Apple's platforms offer only on iOS or only
/// on watchOS always exist, and document their meaning on the other side.
///
/// Thread-safe. It has no connection of its own: all messages travel through `WCSession.default`,
/// and the communicator is its delegate.
///
/// ```swift
/// GuaranteedMessage.observe { message in print(message.identifier, message.content) }
/// Communicator.shared.send(GuaranteedMessage(identifier: "sold", content: ["seats": [7, 8]]))
/// ```
public final class Communicator: NSObject, Sendable {
  /// The communicator of this process.
  ///
  /// The first access sets the delegate of `WCSession.default` and activates it. Activation
  /// continues in the background; `State.observe` reports its end. After a test has replaced that
  /// session, the new one has a new communicator.
  public static var shared: Communicator { WCSession.default.layer { Communicator($0) } }

  let session: WCSession
  let sessionDelegate: SessionDelegate

  private init(_ session: WCSession) {
    self.session = session
    sessionDelegate = SessionDelegate()
    super.init()
    session.delegate = sessionDelegate
    session.activate()
  }

  /// The session's current state.
  public var currentState: State { State(session.activationState) }

  /// The counterpart's current reachability. It may change as soon as this property returns.
  public var currentReachability: Reachability { Reachability(session: session) }

  /// The state of the watch, as the phone knows it; `.notPaired` on a watch.
  public var currentWatchState: WatchState { WatchState(session: session) }

  /// The state of the phone, as the watch knows it; `.notPaired` on a phone.
  public var currentPhoneState: PhoneState { PhoneState(session: session) }

  /// The last context that this side sent, in this or an earlier process; empty if there is none.
  public var mostRecentlySentContext: Context { Context(content: session.applicationContext) }

  /// The last context that this side received, in this process or an earlier one; empty if there is
  /// none.
  public var mostRecentlyReceivedContext: Context {
    Context(content: session.receivedApplicationContext)
  }

  /// `mostRecentlyReceivedContext`, under the name in the original's source.
  public var mostRecentlyReceievedContext: Context { mostRecentlyReceivedContext }

  /// Whether there are arrivals that the observers have not yet received.
  ///
  /// A process that was started to receive may end when this is false.
  public var hasPendingDataToBeReceived: Bool { session.hasContentPending }
}

extension Communicator {
  /// The state of the session.
  ///
  /// Observers are called whenever it is activated, becomes inactive, is deactivated, or cannot be
  /// activated.
  ///
  /// ```swift
  /// Communicator.State.observe { state in if state == .activated { print("ready") } }
  /// ```
  public enum State: Sendable {
    /// Not activated yet, or between two watches: nothing can be sent.
    case notActivated
    /// Changing to another watch: earlier messages still arrive, but nothing can be sent.
    case inactive
    /// The session sends and receives.
    case activated
  }
}

extension Communicator.State {
  init(_ state: WCSessionActivationState) {
    switch state {
    case .notActivated: self = .notActivated
    case .inactive: self = .inactive
    case .activated: self = .activated
    }
  }
}

extension Communicator.State: Observable {
  /// The observers of the session's state.
  public static let observations = Observations<Self>()
}

extension Communicator {
  /// The reason why the communicator did not hand a message over to the session. A later failure is
  /// a `WCError`.
  ///
  /// ```swift
  /// Communicator.shared.send(ImmediateMessage(identifier: "lights")) { error in
  ///   if case Communicator.Error.sessionIsNotReachable(let needed, let actual) = error {
  ///     print("it is \(actual), and has to be \(needed)")
  ///   }
  /// }
  /// ```
  public enum Error: Swift.Error, Sendable, Hashable {
    /// The counterpart is less reachable than this kind of message requires.
    case sessionIsNotReachable(minimumReachability: Reachability, actual: Reachability)
  }
}

extension Communicator.Error: CustomStringConvertible {
  public var description: String {
    switch self {
    case .sessionIsNotReachable(let minimum, let actual):
      "cannot send: the counterpart is \(actual.words), and this needs it to be \(minimum.words); "
        + "wait until Reachability.observe reports it"
    }
  }
}
