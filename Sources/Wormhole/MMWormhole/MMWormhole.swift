public import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// Passes messages between the processes of an App Group; source-compatible with MMWormhole 2.0.
///
/// One message an identifier is kept, the latest. Listeners are called on the main queue, in the
/// passing process, too, so the main thread must serve it (`dispatchMain()`, a run loop, or an
/// `async` main). What the original gets wrong is mended: a nil message is heard as nil; wormholes of
/// two groups or directories never hear each other; failures reach `errorHandler`; a message is
/// announced by its being stored, so none that is readable goes unheard.
///
/// It holds no mechanism of its own: messages are `Value`s, and what only has to be heard is a
/// `Notification` of the same identifier.
public final class MMWormhole: Sendable {
  /// What calls one listener.
  private struct Listening {
    let stored: Observation
    let posted: NotificationRegistration

    func cancel() {
      stored.cancel()
      posted.cancel()
    }
  }

  private struct State {
    var messenger: any MMWormholeTransiting
    var listening: [IdentifierBytes: Listening] = [:]
  }

  /// Identifiers differ if their bytes do, unlike Swift strings.
  private struct IdentifierBytes: Hashable {
    let bytes: [UInt8]
    init(_ identifier: String) { bytes = Array(identifier.utf8) }
  }

  private let files: MMWormholeFileTransiting
  private let state: Mutex<State>

  /// A wormhole of a group. It must stay alive while listeners are to be called.
  ///
  /// - Parameters:
  ///   - identifier: the App Group identifier. A container that cannot be opened is reported to
  ///     `errorHandler` at every use.
  ///   - directory: keeps these messages apart from others of the group.
  public convenience init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?
  ) {
    self.init(
      MMWormholeFileTransiting(
        applicationGroupIdentifier: identifier, optionalDirectory: directory))
  }

  /// A wormhole of a group, with a kind of messenger: both kinds are the same here.
  public convenience init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?,
    transitingType: MMWormholeTransitingType
  ) {
    self.init(applicationGroupIdentifier: identifier, optionalDirectory: directory)
  }

  /// A wormhole through any container.
  public convenience init(container: SharedContainer, optionalDirectory directory: String? = nil) {
    self.init(MMWormholeFileTransiting(container: container, optionalDirectory: directory))
  }

  private init(_ files: MMWormholeFileTransiting) {
    self.files = files
    state = Mutex(State(messenger: files))
  }

  /// What stores and fetches the messages; may be replaced.
  public var wormholeMessenger: any MMWormholeTransiting {
    get { state.withLock { $0.messenger } }
    set {
      // The last one is let go outside the lock: its end may come back here.
      let last = state.withLock { state in
        defer { state.messenger = newValue }
        return state.messenger
      }
      withExtendedLifetime(last) {}
    }
  }

  /// Gets what goes wrong; by default it is written to standard error.
  public var errorHandler: (@Sendable (any Error) -> Void)? {
    get { files.errorHandler }
    set { files.errorHandler = newValue }
  }

  /// Stores a message and calls the identifier's listeners in all processes of the group.
  ///
  /// - Parameters:
  ///   - messageObject: anything that a property list can hold. With nil, listeners hear nil, and
  ///     there is no message any more.
  ///   - identifier: any string; nil does nothing.
  public func passMessageObject(_ messageObject: Any?, identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    do {
      guard messenger === files else {
        guard messenger.writeMessageObject(messageObject, forIdentifier: identifier) else { return }
        return try notification(identifier).post()
      }
      try files.store(messageObject, identifier)
      // A stored message is heard as such; that there is none any more has to be told.
      if messageObject == nil { try notification(identifier).post() }
    } catch {
      files.report(error)
    }
  }

  /// The latest message of an identifier; nil if there is none. Reading does not remove it.
  ///
  /// In a program that imports Foundation its numbers cast to every number type that holds them, as
  /// with the original; without Foundation they are `Int` or `Double`. Listeners get the same.
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

  /// Calls a closure on the main queue whenever a message is passed, with the latest message then.
  ///
  /// - Parameters:
  ///   - identifier: which messages; nil does nothing.
  ///   - listener: replaces the identifier's last one on this wormhole; nil removes it. It is kept as
  ///     long as the wormhole: one that captures the wormhole itself keeps both until it is removed.
  ///     One that is written in an actor other than the main one runs there.
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
        $0.listening.updateValue(listening, forKey: IdentifierBytes(identifier))
      }
      replaced?.cancel()
    } catch {
      files.report(error)
    }
  }

  private func listen(
    _ identifier: String, _ listener: IsolatedHandler<Any?>
  ) throws -> Listening {
    let files = files
    let stored = try files.value(identifier).observe(on: .main) { [weak self] snapshot in
      // Another messenger has messages of its own.
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
    return Listening(stored: stored, posted: posted)
  }

  /// Removes the identifier's listener.
  public func stopListeningForMessage(withIdentifier identifier: String?) {
    guard let identifier else { return }
    let listening = state.withLock {
      $0.listening.removeValue(forKey: IdentifierBytes(identifier))
    }
    listening?.cancel()
  }

  private func notification(_ identifier: String) throws -> Notification {
    try files.container().notification(files.qualified(identifier))
  }
}
