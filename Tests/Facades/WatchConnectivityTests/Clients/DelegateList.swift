// Passes everything on to several delegates, and asks each whether it has a method. This is only compiled.
import WatchConnectivity

protocol Linked: WCSessionDelegate {}

extension Linked {
  // A property of the app's own with the name of the delegate's methods.
  var session: WCSession { return .default }

  func begin() {
    session.delegate = self
    if session.activationState != .activated { session.activate() }
  }
}

public class DelegateList: NSObject, Linked {
  public var delegates: [WCSessionDelegate] = []
  private lazy var current = session

  public func start() {
    begin()
    current.activate()
  }

  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    for delegate in delegates {
      delegate.session(session, activationDidCompleteWith: activationState, error: error)
    }
  }

  public func sessionDidBecomeInactive(_ session: WCSession) {}
  public func sessionDidDeactivate(_ session: WCSession) {}

  public func sessionReachabilityDidChange(_ session: WCSession) {
    for delegate in delegates { delegate.sessionReachabilityDidChange?(session) }
    if let call = delegates.first?.sessionReachabilityDidChange { call(session) }
  }

  public func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    guard delegates.first?.session != nil else { return }
    delegates.first?.session!(session, didReceiveMessage: message)
    for delegate in delegates {
      delegate.session?(session, didReceiveMessage: message) { reply in NSLog("%@", "\(reply)") }
    }
  }
}
