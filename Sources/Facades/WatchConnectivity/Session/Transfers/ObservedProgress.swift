public import Foundation

import class WormholeUserDefaults.KeyValueObservers
import struct WormholeUserDefaults.ObservableProperty

/// A progress that reports the changes of its properties.
///
/// A child's change passes through no method that a subclass can override, so a progress with
/// children reports such a change with its own next one.
// `Progress` is unchecked itself, and this class adds no mutable state.
package final class ObservedProgress: Progress, @unchecked Sendable {
  fileprivate let observers = KeyValueObservers<Progress>(of: [
    ObservableProperty(\.fractionCompleted), ObservableProperty(\.completedUnitCount),
    ObservableProperty(\.totalUnitCount), ObservableProperty(\.isIndeterminate),
    ObservableProperty(\.isFinished), ObservableProperty(\.isCancelled),
    ObservableProperty(\.isPaused), ObservableProperty(\.isCancellable),
    ObservableProperty(\.isPausable),
  ])

  package override var totalUnitCount: Int64 { didSet { report() } }
  package override var completedUnitCount: Int64 { didSet { report() } }
  package override var isCancelled: Bool { didSet { report() } }
  package override var isPaused: Bool { didSet { report() } }
  package override var isCancellable: Bool { didSet { report() } }
  package override var isPausable: Bool { didSet { report() } }

  private func report() { observers.reportChanges(of: self) }
}

extension Progress {
  /// Calls a handler when a property changes, until the observation is invalidated or released.
  ///
  /// The progress of a `WCSessionFileTransfer` can be observed: `fractionCompleted`,
  /// `completedUnitCount`, `totalUnitCount`, `isIndeterminate`, `isFinished`, `isCancelled`,
  /// `isPaused`, `isCancellable` and `isPausable`. The handler is called on the thread that changes
  /// the property, as with Apple's: for copying, that is the transfer's own queue.
  ///
  /// No other progress can be observed, because Foundation's class on Linux reports no changes: an
  /// event of `Diagnostics` says so, and the handler gets at most the initial call. The same holds
  /// for any other property.
  ///
  /// - Parameters:
  ///   - keyPath: the property.
  ///   - options: the values that the handler gets, and when.
  ///   - changeHandler: gets the progress and the change.
  @preconcurrency
  public func observe<Value>(
    _ keyPath: KeyPath<Progress, Value>, options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping @Sendable (Progress, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    guard let observed = self as? ObservedProgress else {
      return KeyValueObservers.refuse(
        self, keyPath: keyPath, options: options,
        because: "on Linux only the progress of a file transfer reports its changes", changeHandler)
    }
    let observation = observed.observers.observe(
      self, keyPath: keyPath, options: options, changeHandler)
    observed.observers.reportChanges(of: self)
    return observation
  }
}
