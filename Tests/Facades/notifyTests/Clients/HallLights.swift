import Foundation
import notify

extension CFNotificationName {
  static let lights = CFNotificationName("com.example.hall.lights" as CFString)
}

/// A wrapper of the Darwin center, as sources for Apple's systems have it.
public final class HallLights {
  public static let shared = HallLights()

  private let notificationCenter: CFNotificationCenter
  public private(set) var heard: [String] = []

  public init() {
    notificationCenter = CFNotificationCenterGetDarwinNotifyCenter()
  }

  deinit {
    CFNotificationCenterRemoveEveryObserver(
      notificationCenter, Unmanaged.passUnretained(self).toOpaque())
  }

  private var observer: UnsafeRawPointer {
    UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
  }

  public func observe(_ name: String) {
    CFNotificationCenterAddObserver(
      notificationCenter, observer,
      { (center, observer, name, object, userInfo) -> Void in
        guard let observer = observer, let name = name else { return }
        let lights = Unmanaged<HallLights>.fromOpaque(observer).takeUnretainedValue()
        lights.heard.append(name.rawValue as String)
      }, name as CFString, nil, .deliverImmediately)
  }

  public func observeLights() {
    let callback: CFNotificationCallback = hear
    CFNotificationCenterAddObserver(
      CFNotificationCenterGetDarwinNotifyCenter(), observer, callback,
      CFNotificationName.lights.rawValue, nil, CFNotificationSuspensionBehavior.coalesce)
  }

  fileprivate func note(_ name: CFNotificationName?) {
    heard.append(name == .lights ? "lights" : "other")
  }

  public func post(_ name: String) {
    CFNotificationCenterPostNotification(
      notificationCenter, CFNotificationName(rawValue: name as CFString), nil, nil, true)
  }

  public func postLights() {
    CFNotificationCenterPostNotificationWithOptions(
      notificationCenter, .lights, nil, [:] as CFDictionary, kCFNotificationPostToAllSessions)
  }

  public func stop(_ name: String) {
    let name = CFNotificationName(name as CFString)
    CFNotificationCenterRemoveObserver(notificationCenter, observer, name, nil)
  }

  public func stopEverything() {
    CFNotificationCenterRemoveEveryObserver(notificationCenter, observer)
  }
}

private func hear(
  center: CFNotificationCenter?, observer: UnsafeMutableRawPointer?, name: CFNotificationName?,
  object: UnsafeRawPointer?, userInfo: CFDictionary?
) {
  guard let observer = observer else { return }
  Unmanaged<HallLights>.fromOpaque(observer).takeUnretainedValue().note(name)
}
