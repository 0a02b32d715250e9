// A third of the code written for Apple's module imports nothing else: it re-exports Foundation. This is only
// compiled; its `try?` is how such code is written.
import WatchConnectivity

public class StepsLink: NSObject, WCSessionDelegate {
  public static let shared = StepsLink()
  private let queue = DispatchQueue(label: "steps")
  private var session: WCSession { return WCSession.default }

  public func start() {
    guard WCSession.isSupported() else { return }
    session.delegate = self
    session.activate()
  }

  public func send(_ steps: Int, at date: Date = Date()) throws {
    let data = try JSONEncoder().encode(["steps": steps])
    if session.isReachable {
      session.sendMessageData(data, replyHandler: nil) { error in
        NSLog("not sent: %@", "\(error)")
      }
    } else {
      try session.updateApplicationContext(["steps": steps, "date": date])
    }
  }

  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    queue.async { _ = session.receivedApplicationContext["steps"] as? Int }
  }

  public func sessionDidBecomeInactive(_ session: WCSession) {}
  public func sessionDidDeactivate(_ session: WCSession) { session.activate() }

  public func session(_ session: WCSession, didReceive file: WCSessionFile) {
    let place = FileManager.default.temporaryDirectory
      .appendingPathComponent(file.fileURL.lastPathComponent)
    try? FileManager.default.moveItem(at: file.fileURL, to: place)
  }
}
