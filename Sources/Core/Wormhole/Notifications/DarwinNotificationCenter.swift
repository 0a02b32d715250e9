public import Dispatch
import Synchronization

/// An interface to a container's notifications like that of
/// `CFNotificationCenterGetDarwinNotifyCenter`: observers are added under a name, removed, and
/// called after a post.
///
/// As in the original, there is no object and no user info. Unlike the original, no run loop is
/// needed: each observer names its queue, by default the main queue. Errors are thrown, not lost.
///
/// ```swift
/// final class Hall: Sendable {}
/// let hall = Hall()
/// let center = DarwinNotificationCenter(container: container)
/// try center.addObserver(hall, name: "lights-out") { name in print("\(name) was posted") }
/// try center.postNotification(name: "lights-out")
/// center.removeEveryObserver(hall)
/// ```
public final class DarwinNotificationCenter: Sendable {
  private struct Observer {
    /// The address of the object, which is only compared.
    let owner: UInt
    let registration: NotificationRegistration
  }

  /// The container that the processes share.
  public let container: SharedContainer
  /// Observers by name, byte for byte, because Swift strings can be equal with different bytes.
  private let observers = Mutex<[EncodedName: [Observer]]>([:])

  /// Creates a center for a container. Several centers in one process are independent, and receive
  /// each other's posts.
  public init(container: SharedContainer) {
    self.container = container
  }

  /// Calls a closure after each post of a name, or once after several in a row.
  ///
  /// - Parameters:
  ///   - observer: The object by which the closure is removed again; not retained. Several closures
  ///     may share it.
  ///   - name: The notification's name.
  ///   - queue: The queue on which the closure is called; by default the main queue.
  ///   - callback: Receives the name.
  /// - Throws: `WormholeError`, as `DarwinNotification.observe`.
  public func addObserver(
    _ observer: AnyObject, name: String, queue: DispatchQueue = .main,
    callback: @escaping @Sendable (String) -> Void
  ) throws {
    try addObserver(at: Self.address(of: observer), name: name, queue: queue, callback: callback)
  }

  /// Calls a closure after each post of a name; see the form with an object.
  ///
  /// - Parameter observer: Any address, by which the closure is removed again.
  package func addObserver(
    at observer: UInt, name: String, queue: DispatchQueue = .main,
    callback: @escaping @Sendable (String) -> Void
  ) throws {
    let registration = try container.notification(name).observe(on: queue) { _ in callback(name) }
    let entry = Observer(owner: observer, registration: registration)
    observers.withLock { $0[EncodedName(name), default: []].append(entry) }
  }

  /// Removes an observer's closures for one name.
  public func removeObserver(_ observer: AnyObject, name: String) {
    removeObserver(at: Self.address(of: observer), name: name)
  }

  /// Removes the closures of an address, for one name or, if it is nil, for all.
  package func removeObserver(at observer: UInt, name: String?) {
    let names = name.map { [EncodedName($0)] } ?? observers.withLock { Array($0.keys) }
    for name in names { remove(observer, name) }
  }

  private static func address(of observer: AnyObject) -> UInt {
    UInt(bitPattern: ObjectIdentifier(observer))
  }

  private func remove(_ owner: UInt, _ name: EncodedName) {
    let gone = observers.withLock { all -> [Observer] in
      let own = all[name]?.filter { $0.owner == owner }
      all[name]?.removeAll { $0.owner == owner }
      if all[name]?.isEmpty == true { all[name] = nil }
      return own ?? []
    }
    for observer in gone { observer.registration.cancel() }
  }

  /// Removes all closures of an observer.
  public func removeEveryObserver(_ observer: AnyObject) {
    removeObserver(at: Self.address(of: observer), name: nil)
  }

  /// Posts a notification to the observers in all processes, including this one.
  ///
  /// - Throws: `WormholeError` for an error of the file system.
  public func postNotification(name: String) throws {
    try container.notification(name).post()
  }
}
