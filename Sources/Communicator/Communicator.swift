public import Foundation
internal import WatchConnectivity

/// Talks with the counterpart: the watch process from the phone's, the phone process from a watch's.
///
/// The first access to `shared` activates the session; so does the first `observe` of any type.
/// Observers come first: what was sent while this process did not run arrives right after activation.
///
/// On Linux one module serves both sides: what Apple's platforms offer only on iOS or only on watchOS
/// is always there, and says for itself what it means on the other side.
///
/// Thread-safe. It holds no connection of its own: all travels through `WCSession.default`, of which it
/// is the delegate.
public final class Communicator: NSObject, Sendable {
  /// The communicator of this process.
  ///
  /// The first access sets the delegate of `WCSession.default` and activates it, which goes on in the
  /// background; `State.observe` tells when it is done.
  public static let shared = Communicator()

  let session: WCSession
  let sessionDelegate: SessionDelegate

  private override init() {
    session = .default
    sessionDelegate = SessionDelegate()
    super.init()
    session.delegate = sessionDelegate
    session.activate()
  }

  /// The state of the session now.
  public var currentState: State { State(session.activationState) }

  /// How the counterpart can be reached now. It may be different as soon as this returns.
  public var currentReachability: Reachability { Reachability(session: session) }

  /// What the phone knows of its watch; `.notPaired` on a watch.
  public var currentWatchState: WatchState { WatchState(session: session) }

  /// What a watch knows of its phone; `.notPaired` on a phone.
  public var currentPhoneState: PhoneState { PhoneState(session: session) }

  /// The context that was sent last from here, also by a process before this one; empty if none was.
  public var mostRecentlySentContext: Context { Context(content: session.applicationContext) }

  /// The context that came last, also to a process before this one; empty if none did.
  public var mostRecentlyReceivedContext: Context {
    Context(content: session.receivedApplicationContext)
  }

  /// The same as `mostRecentlyReceivedContext`, by the name that the original's source gives it.
  public var mostRecentlyReceievedContext: Context { mostRecentlyReceivedContext }

  /// Whether something has come that the observers have not been given yet.
  ///
  /// A process that was started to receive may end when this is false.
  public var hasPendingDataToBeReceived: Bool { session.hasContentPending }
}
