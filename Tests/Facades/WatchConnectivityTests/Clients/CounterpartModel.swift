// A model that follows what the session knows of its counterpart, and the progress of a file.
import WatchConnectivity

public class CounterpartModel {
  public private(set) var isPaired = false
  private var changes = 0
  private var observations: [NSKeyValueObservation] = []
  private var progressObserver: NSKeyValueObservation?

  public init() {}

  public func follow(_ session: WCSession, report: @escaping (String) -> Void) {
    observations = [
      session.observe(\.isPaired, options: [.initial, .new]) { [weak self] _, change in
        guard let self = self, let isPaired = change.newValue else { return }
        self.isPaired = isPaired
        self.changes += 1
        report("paired \(isPaired)")
      },
      session.observe(\.isReachable, options: [.new, .old]) { _, change in
        report("reachable \(change.oldValue ?? true) \(change.newValue ?? false)")
      },
      session.observe(\.isWatchAppInstalled) { session, change in
        report("installed \(session.isWatchAppInstalled) \(change.newValue == nil)")
      },
      session.observe(\.isCompanionAppInstalled, options: .prior) { session, change in
        report("companion \(session.isCompanionAppInstalled) \(change.isPrior)")
      },
    ]
  }

  public func stop() {
    observations.removeAll()
  }

  public func send(_ file: URL, by session: WCSession, report: @escaping (String) -> Void) {
    var last = -1.0
    let transfer = session.transferFile(file, metadata: nil)
    observe(transfer.progress) { fraction in
      if fraction < last { report("back to \(fraction)") }
      last = fraction
      if fraction == 1 { report("whole") }
    }
  }

  private func observe(_ progress: Progress?, _ show: @escaping (Double) -> Void) {
    progressObserver = progress?.observe(\.fractionCompleted, options: [.initial]) { progress, _ in
      show(progress.fractionCompleted)
    }
  }
}
