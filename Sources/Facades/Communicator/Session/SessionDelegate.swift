internal import Dispatch
internal import Foundation
internal import Synchronization
internal import WatchConnectivity

/// Turns the session's callbacks into values for observers; called on the session's queue, one call
/// at a time.
final class SessionDelegate: NSObject, WCSessionDelegate, Sendable {
  let userInfoTransfers = Completions<WCSessionUserInfoTransfer>()
  let fileTransfers = Completions<WCSessionFileTransfer>()
  private let retry = Mutex(ActivationRetry())

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    reportState(of: session)
    if session.isPhone { WatchState.notifyObservers(WatchState(session: session)) }
    if session.isWatch { PhoneState.notifyObservers(PhoneState(session: session)) }
    guard activationState == .notActivated else {
      retry.withLock { $0.succeeded() }
      return
    }
    guard let pause = retry.withLock({ $0.pause(after: error) }) else { return }
    DispatchQueue.communicator.asyncAfter(deadline: .now() + .milliseconds(pause.milliseconds)) {
      session.activate()
    }
  }

  func sessionDidBecomeInactive(_ session: WCSession) { reportState(of: session) }

  func sessionDidDeactivate(_ session: WCSession) {
    reportState(of: session)
    // The next watch is waiting.
    session.activate()
  }

  func sessionReachabilityDidChange(_ session: WCSession) {
    Reachability.notifyObservers(Reachability(session: session))
  }

  func sessionWatchStateDidChange(_ session: WCSession) {
    WatchState.notifyObservers(WatchState(session: session))
    Reachability.notifyObservers(Reachability(session: session))
  }

  func sessionCompanionAppInstalledDidChange(_ session: WCSession) {
    PhoneState.notifyObservers(PhoneState(session: session))
    Reachability.notifyObservers(Reachability(session: session))
  }

  private func reportState(of session: WCSession) {
    Communicator.State.notifyObservers(Communicator.State(session.activationState))
    Reachability.notifyObservers(Reachability(session: session))
  }
}

extension Duration {
  /// The duration in milliseconds, rounded down.
  fileprivate var milliseconds: Int {
    Int(components.seconds) * 1_000 + Int(components.attoseconds / 1_000_000_000_000_000)
  }
}
