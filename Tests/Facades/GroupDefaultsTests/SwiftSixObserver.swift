import Foundation

import class SharedUserDefaults.NSKeyValueObservation
import class SharedUserDefaults.UserDefaults

extension UserDefaults {
  fileprivate var seats: Int { integer(forKey: "seats") }
}

/// Compiles, in the mode of Swift 6, as a model of an app is written. Nothing makes one.
@MainActor
private final class SeatsModel: NSObject {
  private(set) var seats = 0
  private var observation: NSKeyValueObservation?

  func begin(_ defaults: UserDefaults = .standard) {
    observation = defaults.observe(\.seats, options: [.initial, .new]) { [weak self] _, change in
      let seats = change.newValue ?? 0
      Task { @MainActor in self?.seats = seats }
    }
  }
}
