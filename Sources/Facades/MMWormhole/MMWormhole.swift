import Dispatch
public import Foundation
import Synchronization
public import Wormhole
import WormholeToolkit

/// A passage for messages between the processes of an App Group; source-compatible with MMWormhole
/// 2.0.
///
/// The latest message of each identifier is kept. Listeners are called on the main queue, even in
/// the sending process, so the main thread must serve it (`dispatchMain()`, a run loop, or an
/// `async` main). Some faults of the original are corrected: listeners receive a nil message as
/// nil; wormholes of two groups or directories never receive each other's messages; failures reach
/// `errorHandler`; the stored message is its own announcement, so no readable message goes
/// unnoticed.
///
/// It has no mechanism of its own: messages are `Value`s, each with an archive beside it for
/// programs that use the original, and a message that no value holds is a `DarwinNotification` with
/// the same identifier.
///
/// Any thread may call its methods. Like the original, it is not `Sendable`: a subclass of an open
/// `Sendable` class would also have to declare that, and code written for the original does not.
///
/// ```swift
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: "wormhole")
/// wormhole.listenForMessage(withIdentifier: "button") { message in print(message ?? "cleared") }
/// wormhole.passMessageObject(["pressed": 3] as NSCoding, identifier: "button")
/// ```
open class MMWormhole: NSObject, MMWormholeTransitingDelegate {
  /// A messenger or a message, which need not be Sendable, because the original's are not.
  // The original calls a messenger from the same threads, so it must be ready for that.
  private struct Shared<Object>: @unchecked Sendable {
    let object: Object
  }

  /// The wormhole of an observation.
  // An observation uses it only under its Mutex, or on the main queue.
  private struct Owner: @unchecked Sendable {
    private(set) weak var wormhole: MMWormhole?
  }

  private struct Listener {
    let handler: IsolatedHandler<Any?>
    /// Nil if nothing can be observed.
    var observation: ObservationToken?
  }

  private struct State {
    var files: Shared<MMWormholeFileTransiting>
    var messenger: Shared<any MMWormholeTransiting>
    /// By the bytes of the identifier, because two identifiers may be equal as strings.
    var listeners: [[UInt8]: Listener] = [:]
  }

  private let state: Mutex<State>

  /// Creates a group's wormhole. Keep it alive as long as its listeners should be called.
  ///
  /// - Parameters:
  ///   - identifier: The App Group identifier. A container that cannot be opened is reported to
  ///     `errorHandler` at every use.
  ///   - directory: Separates these messages from others in the group.
  public init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?
  ) {
    let files = Shared(
      object: MMWormholeFileTransiting(
        applicationGroupIdentifier: identifier, optionalDirectory: directory))
    state = Mutex(State(files: files, messenger: Shared(object: files.object)))
    super.init()
  }

  /// Creates a group's wormhole with a kind of messenger.
  public convenience init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?,
    transitingType: MMWormholeTransitingType
  ) {
    self.init(applicationGroupIdentifier: identifier, optionalDirectory: directory)
    let make: (String?, String?) -> MMWormholeFileTransiting
    switch transitingType {
    case .file: return
    case .coordinatedFile: make = MMWormholeCoordinatedFileTransiting.init
    case .sessionContext: make = MMWormholeSessionContextTransiting.init
    case .sessionMessage: make = MMWormholeSessionMessageTransiting.init
    case .sessionFile: make = MMWormholeSessionFileTransiting.init
    }
    let messenger = make(identifier, directory)
    messenger.reporter = files.reporter
    let shared = Shared<any MMWormholeTransiting>(object: messenger)
    state.withLock { $0.messenger = shared }
  }

  /// Creates a wormhole through any container.
  public convenience init(container: SharedContainer, optionalDirectory directory: String? = nil) {
    self.init(applicationGroupIdentifier: nil, optionalDirectory: directory)
    let files = Shared(
      object: MMWormholeFileTransiting(container: container, optionalDirectory: directory))
    state.withLock { state in
      state.files = files
      state.messenger = Shared(object: files.object)
    }
  }

  /// Creates a wormhole without a group, which reports every use to `errorHandler`. The original's
  /// initializer returns nil.
  public override convenience init() {
    self.init(applicationGroupIdentifier: nil, optionalDirectory: nil)
  }

  private var files: MMWormholeFileTransiting { state.withLock { $0.files }.object }

  /// The messenger that stores and fetches the messages; it can be replaced. Listeners stay.
  open var wormholeMessenger: any MMWormholeTransiting {
    get { state.withLock { $0.messenger }.object }
    set {
      let last = storage
      let messenger = Shared(object: newValue)
      // The old messenger is released outside the lock, because its end may call back here.
      let replaced = state.withLock { state in
        defer { state.messenger = messenger }
        return state.messenger
      }
      withExtendedLifetime(replaced) {}
      if storage !== last { observeAgain() }
    }
  }

  /// Receives errors; by default they are events of `Diagnostics`.
  public var errorHandler: (@Sendable (any Error) -> Void)? {
    get { files.errorHandler }
    set { files.errorHandler = newValue }
  }

  func report(_ error: any Error) { files.report(error) }

  func reporting<Result>(otherwise: Result, _ body: () throws -> Result) -> Result {
    files.reporting(otherwise: otherwise, body)
  }

  /// The storage of messages, and of notifications if a messenger stores them elsewhere.
  private var storage: MMWormholeFileTransiting {
    let (files, messenger) = state.withLock { ($0.files, $0.messenger) }
    return messenger.object as? MMWormholeFileTransiting ?? files.object
  }

  // MARK: Messages

  /// Stores a message and calls the identifier's listeners in all processes of the group.
  ///
  /// - Parameters:
  ///   - messageObject: Any object that a property list can hold, or that `NSKeyedArchiver`
  ///     archives. With nil, listeners receive nil, and the stored message is removed.
  ///   - identifier: Any string; nil does nothing.
  open func passMessageObject(_ messageObject: (any NSCoding)?, identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    let files = messenger as? MMWormholeFileTransiting
    let last = files?.publication(of: identifier)
    guard messenger.writeMessageObject(messageObject, forIdentifier: identifier) else { return }
    // A published value announces itself; any other message needs a notification.
    if messageObject != nil, let files, files.hasPublished(identifier, since: last) { return }
    self.files.reporting(otherwise: ()) { try storage.notification(identifier).post() }
  }

  /// Returns the latest message of an identifier, or nil if there is none. Reading does not remove
  /// it.
  ///
  /// Numbers in it cast to every number type that can hold them, as with the original; so do
  /// numbers that listeners receive.
  open func message(withIdentifier identifier: String?) -> Any? {
    wormholeMessenger.messageObject(forIdentifier: identifier)
  }

  /// Removes an identifier's message. Listeners are not called.
  open func clearMessageContents(forIdentifier identifier: String?) {
    wormholeMessenger.deleteContent(forIdentifier: identifier)
  }

  /// Removes all messages in the directory, if the wormhole has one. Listeners are not called.
  open func clearAllMessageContents() {
    wormholeMessenger.deleteContentForAllMessages()
  }

  // MARK: Listening

  /// Calls a closure on the main queue with the latest message whenever a message is passed.
  ///
  /// - Parameters:
  ///   - identifier: The identifier of the messages; nil does nothing.
  ///   - listener: The closure, which replaces the identifier's last listener on this wormhole; nil
  ///     removes it. The wormhole keeps it, so a listener that captures the wormhole keeps both
  ///     alive until it is removed.
  @_disfavoredOverload
  open func listenForMessage(
    withIdentifier identifier: String?, listener: ((Any?) -> Void)? = nil
  ) {
    guard let identifier else { return }
    guard let listener else { return stopListeningForMessage(withIdentifier: identifier) }
    let handler = IsolatedHandler<Any?>(isCalledOnMain: true, listener)
    let entry = Listener(handler: handler, observation: observed(identifier))
    let replaced = state.withLock {
      $0.listeners.updateValue(entry, forKey: Array(identifier.utf8))
    }
    replaced?.observation?.cancel()
  }

  /// Removes the identifier's listener.
  open func stopListeningForMessage(withIdentifier identifier: String?) {
    guard let identifier else { return }
    let removed = state.withLock { $0.listeners.removeValue(forKey: Array(identifier.utf8)) }
    removed?.observation?.cancel()
  }

  /// Calls the identifier's listener with a message, later, on the main queue. May be called on any
  /// thread.
  open func notifyListenerForMessage(withIdentifier identifier: String?, message: (any NSCoding)?) {
    guard let identifier else { return }
    // A message is created for one delivery; the messenger that fetched it hands it over for good.
    let delivery = Shared(object: message)
    let owner = Owner(wormhole: self)
    DispatchQueue.main.async {
      let listener = owner.wormhole?.state.withLock {
        $0.listeners[Array(identifier.utf8)]?.handler
      }
      listener?(delivery.object)
    }
  }

  private func observed(_ identifier: String) -> ObservationToken? {
    files.reporting(otherwise: nil) { try observation(identifier) }
  }

  /// Observes an identifier's messages; nil if they arrive in other ways.
  func observation(_ identifier: String) throws -> ObservationToken? {
    let storage = storage
    let owner = Owner(wormhole: self)
    let stored = try storage.value(identifier).observe(on: .main) { snapshot in
      if !snapshot.isAbsent, !snapshot.isKnown { owner.wormhole?.hearStored(identifier) }
    }
    let posted = try storage.notification(identifier).observe(on: .main) { _ in
      owner.wormhole?.hearPosted(identifier)
    }
    let both = ObservationToken(watch: stored, delivery: posted)
    guard let archived = try storage.observeArchive(identifier) else { return both }
    return ObservationToken(watch: both, delivery: archived)
  }

  private func observeAgain() {
    for key in state.withLock({ Array($0.listeners.keys) }) {
      let observation = observed(String(decoding: key, as: UTF8.self))
      let replaced = state.withLock { state -> ObservationToken? in
        // The listener may have been removed meanwhile.
        guard let last = state.listeners[key] else { return observation }
        state.listeners[key]?.observation = observation
        return last.observation
      }
      replaced?.cancel()
    }
  }

  private func hearStored(_ identifier: String) {
    // A messenger of another kind has its own messages.
    guard let messenger = wormholeMessenger as? MMWormholeFileTransiting,
      let message = messenger.messageObject(forIdentifier: identifier)
    else { return }
    notifyListenerForMessage(withIdentifier: identifier, message: message)
  }

  private func hearPosted(_ identifier: String) {
    let messenger = wormholeMessenger
    let message = messenger.messageObject(forIdentifier: identifier)
    // A message that cannot be read now, which was reported, is not a nil message.
    if message == nil, let files = messenger as? MMWormholeFileTransiting,
      files.mayHaveMessage(identifier)
    {
      return
    }
    notifyListenerForMessage(withIdentifier: identifier, message: message)
  }
}

extension MMWormhole {
  /// Calls a closure with the latest message whenever a message is passed; see the form with an
  /// optional closure.
  ///
  /// Swift chooses this form for a closure written in the call, because the closure's type then
  /// includes its actor. A closure of an actor other than the main one runs on that actor.
  public func listenForMessage(
    withIdentifier identifier: String?, listener: @escaping @isolated(any) (Any?) -> Void
  ) {
    let handler = IsolatedHandler<Any?>(isCalledOnMain: true, listener)
    // Its type selects the other form, which a subclass may override.
    let plain: ((Any?) -> Void)? = { handler($0) }
    listenForMessage(withIdentifier: identifier, listener: plain)
  }
}
