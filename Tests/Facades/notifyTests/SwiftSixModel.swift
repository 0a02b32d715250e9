import Foundation
import notify

extension CFNotificationName {
  fileprivate static let seats = CFNotificationName("com.example.seats" as CFString)
}

/// Compiles, in the mode of Swift 6, as a model of an app is written. Nothing makes one.
@MainActor
private final class SeatsModel {
  private(set) var seats: UInt64 = 0
  private var token: Int32 = NOTIFY_TOKEN_INVALID

  func begin() {
    notify_register_dispatch("com.example.seats", &token, .main) { [weak self] token in
      var state: UInt64 = 0
      guard notify_get_state(token, &state) == NOTIFY_STATUS_OK else { return }
      self?.seats = state
    }
    CFNotificationCenterAddObserver(
      CFNotificationCenterGetDarwinNotifyCenter(), Unmanaged.passUnretained(self).toOpaque(),
      { _, observer, _, _, _ in
        guard let observer else { return }
        let model = Unmanaged<SeatsModel>.fromOpaque(observer).takeUnretainedValue()
        Task { @MainActor in model.seats += 1 }
      }, CFNotificationName.seats.rawValue, nil, .deliverImmediately)
  }
}
