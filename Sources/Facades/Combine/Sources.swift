public import Foundation
public import WormholeUserDefaults

extension NotificationCenter {
  /// Publishes notifications with a name, on the posting thread; with an object, only its own.
  public func publisher(
    for name: Notification.Name, object: AnyObject? = nil
  ) -> AnyPublisher<Notification, Never> {
    AnyPublisher { subscriber in
      let conduit = Conduit(subscriber, keeping: 0)
      let token = self.addObserver(forName: name, object: object, queue: nil) { conduit.send($0) }
      conduit.keep(AnyCancellable { self.removeObserver(token) })
    }
  }
}

extension WormholeUserDefaults.UserDefaults {
  /// Publishes the value of a computed property that reads these defaults, now and after each change by any
  /// process. Without the option `initial` it begins with the next change; other options have no effect.
  public func publisher<Value: Equatable & Sendable>(
    for keyPath: any KeyPath<WormholeUserDefaults.UserDefaults, Value> & Sendable,
    options: NSKeyValueObservingOptions = [.initial, .new]
  ) -> AnyPublisher<Value, Never> {
    AnyPublisher { subscriber in
      let conduit = Conduit(subscriber, keeping: 0)
      let token = self.observe(keyPath, options: [options.intersection(.initial), .new]) {
        if let value = $1.newValue { conduit.send(value) }
      }
      conduit.keep(AnyCancellable(token.invalidate))
    }
  }
}
