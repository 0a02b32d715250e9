import Dispatch

// Not the whole module, which has an NSObject of its own.
import struct WormholeUserDefaults.ObservableProperty

extension WCSession {
  /// The properties that Apple's samples observe, and those whose changes the delegate learns of.
  static let observable: [ObservableProperty<WCSession>] = [
    ObservableProperty(\.activationState), ObservableProperty(\.hasContentPending),
    ObservableProperty(\.isReachable), ObservableProperty(\.isPaired),
    ObservableProperty(\.isWatchAppInstalled), ObservableProperty(\.isComplicationEnabled),
    ObservableProperty(\.remainingComplicationUserInfoTransfers),
    ObservableProperty(\.watchDirectoryURL), ObservableProperty(\.isCompanionAppInstalled),
  ]

  /// Calls a handler when a property changes, until the observation is invalidated or released.
  ///
  /// These can be observed: `activationState`, `hasContentPending`, `isReachable`, `isPaired`,
  /// `isWatchAppInstalled`, `isComplicationEnabled`, `remainingComplicationUserInfoTransfers`,
  /// `watchDirectoryURL` and `isCompanionAppInstalled`. Any other property is an event of
  /// `Diagnostics`, and its handler gets at most the initial call.
  ///
  /// The handler is called on the delegate's queue, before the delegate learns of the same change;
  /// only the initial call comes on the thread of this call. Changes are reported while the session
  /// is activated; those of `activationState` always.
  ///
  /// The property is read each time something may have changed, so an observation costs what the
  /// property does.
  ///
  /// - Parameters:
  ///   - keyPath: the property.
  ///   - options: the values that the handler gets, and when.
  ///   - changeHandler: gets the session and the change.
  @preconcurrency
  public func observe<Value>(
    _ keyPath: KeyPath<WCSession, Value>, options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping @Sendable (WCSession, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    let observation = observers.observe(
      self, keyPath: keyPath, options: options, changeHandler)
    queue.async { self.notifyObservers() }
    return observation
  }

  /// Reports changes to the observers; on the session's queue.
  func notifyObservers() {
    dispatchPrecondition(condition: .onQueue(queue))
    withDefault { _ = observers.reportChanges(of: self) }
  }
}
