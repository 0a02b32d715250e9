import Foundation
import WatchConnectivity

/// A model of the main actor in Swift 6 mode that observes the session, as such code is written.
@MainActor
final class SwiftSixObserver {
  private(set) var heard: [String] = []
  private var reachabilityObservation: NSKeyValueObservation?
  private var contentObservation: NSKeyValueObservation?
  private var progressObserver: NSKeyValueObservation?

  func start(_ session: WCSession) {
    reachabilityObservation = session.observe(\.isReachable, options: [.new, .old]) {
      [weak self] _, change in
      Task { @MainActor [weak self] in
        guard let self, let isReachable = change.newValue else { return }
        self.hear("reachable \(change.oldValue ?? isReachable) \(isReachable)")
      }
    }
    contentObservation = session.observe(\.hasContentPending) { @Sendable [weak self] session, _ in
      let isPending = session.hasContentPending
      Task { @MainActor in self?.hear("pending \(isPending)") }
    }
  }

  func upload(_ file: URL) {
    let transfer = WCSession.default.transferFile(file, metadata: nil)
    progressObserver = transfer.progress.observe(\.isFinished, options: [.initial, .new]) {
      [weak self] _, change in
      Task { @MainActor in
        if change.newValue == true { self?.hear("finished") }
      }
    }
  }

  private func hear(_ text: String) { heard.append(text) }

  deinit { reachabilityObservation?.invalidate() }
}
