public import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// A passage for messages between the processes of an App Group; source-compatible with MMWormhole
/// 2.0.
///
/// The latest message of each identifier is kept. Listeners are called on the main queue, in the
/// sending process too, so the main thread must serve it (`dispatchMain()`, a run loop, or an
/// `async` main). Some faults of the original are corrected: listeners receive a nil message as
/// nil; wormholes of two groups or directories never receive each other's messages; failures reach
/// `errorHandler`; the stored message is its own announcement, so no readable message goes
/// unnoticed.
///
/// It has no mechanism of its own: messages are `Value`s, and a message without content is a
/// `DarwinNotification` of the same identifier.
public final class MMWormhole: Sendable {
  private struct State {
    var messenger: any MMWormholeTransiting
    /// The observations that call each listener, by the bytes of the identifier, because two identifiers
    /// may be equal as strings.
    var listening: [[UInt8]: ObservationToken] = [:]
  }

  private let files: MMWormholeFileTransiting
  private let state: Mutex<State>

  /// Creates a wormhole of a group. It must stay alive as long as its listeners should be called.
  ///
  /// - Parameters:
  ///   - identifier: The App Group identifier. A container that cannot be opened is reported to
  ///     `errorHandler` at every use.
  ///   - directory: Separates these messages from others of the group.
  public convenience init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?
  ) {
    self.init(
      MMWormholeFileTransiting(
        applicationGroupIdentifier: identifier, optionalDirectory: directory))
  }

  /// Creates a wormhole of a group with a kind of messenger; both kinds are the same here.
  public convenience init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?,
    transitingType: MMWormholeTransitingType
  ) {
    self.init(applicationGroupIdentifier: identifier, optionalDirectory: directory)
  }

  /// Creates a wormhole through any container.
  public convenience init(container: SharedContainer, optionalDirectory directory: String? = nil) {
    self.init(MMWormholeFileTransiting(container: container, optionalDirectory: directory))
  }

  private init(_ files: MMWormholeFileTransiting) {
    self.files = files
    state = Mutex(State(messenger: files))
  }

  /// The messenger that stores and fetches the messages; may be replaced.
  public var wormholeMessenger: any MMWormholeTransiting {
    get { state.withLock { $0.messenger } }
    set {
      // The old messenger is released outside the lock, because its end may call back here.
      let last = state.withLock { state in
        defer { state.messenger = newValue }
        return state.messenger
      }
      withExtendedLifetime(last) {}
    }
  }

  /// The receiver of errors; by default they are written to standard error.
  public var errorHandler: (@Sendable (any Error) -> Void)? {
    get { files.errorHandler }
    set { files.errorHandler = newValue }
  }

  /// Stores a message and calls the identifier's listeners in all processes of the group.
  ///
  /// - Parameters:
  ///   - messageObject: Any object that a property list can hold. With nil, listeners receive nil,
  ///     and the stored message is removed.
  ///   - identifier: Any string; nil does nothing.
  public func passMessageObject(_ messageObject: Any?, identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    do {
      guard messenger === files else {
        guard messenger.writeMessageObject(messageObject, forIdentifier: identifier) else { return }
        return try notification(identifier).post()
      }
      try files.store(messageObject, identifier)
      // A stored message announces itself; a removed one needs a notification.
      if messageObject == nil { try notification(identifier).post() }
    } catch {
      files.report(error)
    }
  }

  /// Returns the latest message of an identifier, or nil if there is none. Reading does not remove
  /// it.
  ///
  /// In a program that imports Foundation its numbers cast to every number type that holds them, as
  /// with the original; without Foundation they are `Int` or `Double`. The same holds for
  /// listeners.
  public func message(withIdentifier identifier: String?) -> Any? {
    wormholeMessenger.messageObject(forIdentifier: identifier)
  }

  /// Removes the message of an identifier. Listeners are not called.
  public func clearMessageContents(forIdentifier identifier: String?) {
    wormholeMessenger.deleteContent(forIdentifier: identifier)
  }

  /// Removes all messages of the directory, if the wormhole has one. Listeners are not called.
  public func clearAllMessageContents() {
    wormholeMessenger.deleteContentForAllMessages()
  }

  /// Calls a closure on the main queue with the latest message whenever a message is passed.
  ///
  /// - Parameters:
  ///   - identifier: The identifier of the messages; nil does nothing.
  ///   - listener: The closure, which replaces the identifier's last listener on this wormhole; nil
  ///     removes it. The wormhole keeps it, so a listener that captures the wormhole keeps both
  ///     alive until it is removed. A listener that is written in an actor other than the main one
  ///     runs there.
  public func listenForMessage(
    withIdentifier identifier: String?, listener: (@isolated(any) (Any?) -> Void)?
  ) {
    guard let identifier else { return }
    stopListeningForMessage(withIdentifier: identifier)
    guard let listener else { return }
    do {
      let listening = try listen(
        identifier, IsolatedHandler(isCalledOnMain: true, listener))
      let replaced = state.withLock {
        $0.listening.updateValue(listening, forKey: Array(identifier.utf8))
      }
      replaced?.cancel()
    } catch {
      files.report(error)
    }
  }

  private func listen(
    _ identifier: String, _ listener: IsolatedHandler<Any?>
  ) throws -> ObservationToken {
    let files = files
    let stored = try files.value(identifier).observe(on: .main) { [weak self] snapshot in
      // Another messenger has its own messages.
      guard self?.wormholeMessenger === files else { return }
      do {
        guard let content = try snapshot.propertyList() else { return }
        listener(content.propertyListObject)
      } catch {
        files.report(error)
      }
    }
    let posted = try notification(identifier).observe(on: .main) { [weak self] _ in
      guard let messenger = self?.wormholeMessenger else { return }
      listener(messenger.messageObject(forIdentifier: identifier))
    }
    return ObservationToken(stored, delivery: posted)
  }

  /// Removes the identifier's listener.
  public func stopListeningForMessage(withIdentifier identifier: String?) {
    guard let identifier else { return }
    let listening = state.withLock {
      $0.listening.removeValue(forKey: Array(identifier.utf8))
    }
    listening?.cancel()
  }

  private func notification(_ identifier: String) throws -> DarwinNotification {
    try files.container().notification(files.qualified(identifier))
  }
}
