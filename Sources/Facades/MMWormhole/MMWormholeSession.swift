public import Foundation
import Synchronization
public import WatchConnectivity
import Wormhole
import WormholePropertyLists

/// Receives messages from the watch session; pass messages with an `MMWormhole` of one of the
/// session's kinds.
///
/// It is the delegate of `WCSession.default`, and transports nothing itself. The session must know
/// its container and its side: see `WCSession.configure`.
///
/// ```swift
/// let listener = MMWormholeSession.sharedListening()
/// listener.listenForMessage(withIdentifier: "button") { message in print(message ?? "cleared") }
/// listener.activateListening()
/// ```
open class MMWormholeSession: MMWormhole, WCSessionDelegate {
  /// The messages of the last context, to find new ones.
  private let known = Mutex<[String: PropertyListValue]>([:])

  // Its own state is in a Mutex, and the original is also one object for all threads.
  private nonisolated(unsafe) static let shared: MMWormholeSession = {
    let session = MMWormholeSession(applicationGroupIdentifier: nil, optionalDirectory: nil)
    WCSession.default.delegate = session
    return session
  }()

  /// The one object that receives; the first call makes it the session's delegate.
  open class func sharedListening() -> MMWormholeSession { shared }

  /// Activates the session. Call it after the listeners are set, because messages that waited for
  /// this process arrive at once.
  open func activateListening() {
    WCSession.default.activate()
  }

  /// Same as `activateListening()`, under the original's name in Objective-C.
  public final func activateSessionListening() { activateListening() }

  // MARK: Unavailable

  /// Reports an error to `errorHandler`: this class only receives. The original ends the process in
  /// debug builds.
  open override func passMessageObject(_ messageObject: (any NSCoding)?, identifier: String?) {
    refuse("pass a message")
  }

  /// Reports an error; see `passMessageObject`.
  open override func message(withIdentifier identifier: String?) -> Any? {
    refuse("read a message")
    return nil
  }

  /// Reports an error; see `passMessageObject`.
  open override func clearMessageContents(forIdentifier identifier: String?) {
    refuse("clear a message")
  }

  /// Reports an error; see `passMessageObject`.
  open override func clearAllMessageContents() { refuse("clear the messages") }

  private func refuse(_ action: String) {
    report(
      WormholeError(
        .inputOutput, action, path: "MMWormholeSession", reason: "it only receives messages",
        remedy: "use an MMWormhole with a session's transitingType"))
  }

  override func observation(_ identifier: String) throws -> ObservationToken? { nil }

  // MARK: WCSessionDelegate

  /// Reports the reason if the session could not be activated.
  open func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { report(error) }
  }

  /// Calls the listener of each message.
  open func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    for identifier in message.keys.sorted() { hear(identifier, message[identifier]) }
  }

  /// Calls the listener of each message that differs from the last context. The original calls all
  /// listeners again.
  open func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    for identifier in applicationContext.keys.sorted() {
      guard let content = content(applicationContext[identifier]) else { continue }
      let isNew = known.withLock { $0.updateValue(content, forKey: identifier) != content }
      if isNew { hear(identifier, content) }
    }
    let identifiers = Set(applicationContext.keys)
    known.withLock { known in known = known.filter { identifiers.contains($0.key) } }
  }

  /// Stores the message with `wormholeMessenger`, if that is a file messenger of a group, and then
  /// calls its listener.
  open func session(_ session: WCSession, didReceive file: WCSessionFile) {
    guard let identifier = file.metadata?[TemporaryContent.identifierKey] as? String else { return }
    reporting(otherwise: ()) {
      let content = try PropertyListValue(data: Data(contentsOf: file.fileURL))
      // A message that cannot be stored still reaches listeners: it does not come again.
      defer { hear(identifier, content) }
      if let files = wormholeMessenger as? MMWormholeFileTransiting, files.hasGroup {
        try files.store(content, identifier)
      }
    }
  }

  /// Reports the failure of a message.
  open func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) {
    if let error { report(error) }
  }

  private func hear(_ identifier: String, _ object: Any?) {
    if let content = content(object) { hear(identifier, content) }
  }

  private func hear(_ identifier: String, _ content: PropertyListValue) {
    reporting(otherwise: ()) {
      notifyListenerForMessage(
        withIdentifier: identifier, message: try MessageContent.message(from: content))
    }
  }

  private func content(_ object: Any?) -> PropertyListValue? {
    reporting(otherwise: nil) { try object.map { try PropertyListValue(propertyList: $0) } }
  }
}
