// Observes the session as the samples of watch apps do, which end their background work when nothing is pending.
import WatchConnectivity

public class ContentGate: NSObject {
  private var activationStateObservation: NSKeyValueObservation?
  private var hasContentPendingObservation: NSKeyValueObservation?
  private let report: (String) -> Void

  public init(report: @escaping (String) -> Void) {
    self.report = report
    super.init()
    activationStateObservation = WCSession.default.observe(\.activationState) { session, _ in
      self.report("state \(session.activationState.rawValue)")
    }
    hasContentPendingObservation = WCSession.default.observe(
      \.hasContentPending, options: [.new, .old]
    ) { _, change in
      guard let old = change.oldValue, let new = change.newValue else { return }
      self.report("pending \(old) \(new)")
    }
  }

  public func close() {
    activationStateObservation?.invalidate()
    hasContentPendingObservation?.invalidate()
  }
}
