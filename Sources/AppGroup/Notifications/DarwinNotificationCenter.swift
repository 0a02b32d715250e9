public import Dispatch
import Synchronization

/// The plain face of a container's notifications, after `CFNotificationCenterGetDarwinNotifyCenter`:
/// observers are added under a name, removed, and called after a post.
///
/// As there, there is no object and no user info. Unlike there, no run loop is needed: each observer
/// names its queue, by default the main one. Errors are thrown instead of being lost.
public final class DarwinNotificationCenter: Sendable {
  private struct Observer {
    let owner: ObjectIdentifier
    let registration: NotificationRegistration
  }

  /// The container whose processes hear each other.
  public let container: SharedContainer
  /// By name, byte for byte: Swift strings are equal when their bytes are not.
  private let observers = Mutex<[EncodedName: [Observer]]>([:])

  /// A center for a container. Several in one process are independent, and hear each other.
  public init(container: SharedContainer) {
    self.container = container
  }

  /// Calls a closure after each post of a name, or once after several in a row.
  ///
  /// - Parameters:
  ///   - observer: by which it is removed again; not retained. Several closures may have one.
  ///   - name: the notification's name.
  ///   - queue: where the closure is called; by default the main queue.
  ///   - callback: gets the name.
  /// - Throws: `AppGroupError`, as `Notification.observe`.
  public func addObserver(
    _ observer: AnyObject, name: String, queue: DispatchQueue = .main,
    callback: @escaping @Sendable (String) -> Void
  ) throws {
    let registration = try container.notification(name).observe(on: queue) { _ in callback(name) }
    let entry = Observer(owner: ObjectIdentifier(observer), registration: registration)
    observers.withLock { $0[EncodedName(name), default: []].append(entry) }
  }

  /// Removes an observer's closures for one name.
  public func removeObserver(_ observer: AnyObject, name: String) {
    remove(observer, EncodedName(name))
  }

  private func remove(_ observer: AnyObject, _ name: EncodedName) {
    let owner = ObjectIdentifier(observer)
    let gone = observers.withLock { all -> [Observer] in
      let (own, others) = (all[name] ?? []).separated { $0.owner == owner }
      all[name] = others.isEmpty ? nil : others
      return own
    }
    for observer in gone { observer.registration.cancel() }
  }

  /// Removes all closures of an observer.
  public func removeEveryObserver(_ observer: AnyObject) {
    for name in observers.withLock({ Array($0.keys) }) { remove(observer, name) }
  }

  /// Posts a notification to the observers in all processes, this one too.
  ///
  /// - Throws: `AppGroupError` for what the file system refuses.
  public func postNotification(name: String) throws {
    try container.notification(name).post()
  }
}

extension Array {
  fileprivate func separated(_ isFirst: (Element) -> Bool) -> (first: [Element], second: [Element])
  {
    (filter(isFirst), filter { !isFirst($0) })
  }
}
