// Helpers for any object, in a file that imports both modules.
import Foundation
import SharedUserDefaults

public enum AnyObjectHelpers {
  public static func used(on what: String) -> String? {
    guard let defaults = UserDefaults(suiteName: "group.com.example.helpers") else { return nil }
    let (listener, settings) = (Listener(), Settings())
    defaults.set(1, forKey: "goal")
    if what == "defaults" {
      begin(listener, of: defaults, "goal")
      copy("goal", from: settings, to: defaults, "goal")
      end(listener, of: defaults, "goal")
      defaults.set(3, forKey: "goal")
      return listener.heard.joined(separator: ", ")
    }
    begin(listener, of: settings, "goal")
    copy("goal", from: defaults, to: settings, "goal")
    end(listener, of: settings, "goal")
    let before = settings.value(forKey: "title")
    settings.title = "tea"
    return "\(listener.heard.joined(separator: ", ")); unknown \(settings.unknown.joined())"
      + "; title \(before ?? "nil"), then \(settings.value(forKey: "title") as? String as Any)"
      + "; none \(settings.value(forKey: "none") ?? "nil")"
  }

  private static func begin(_ observer: NSObject, of object: NSObject, _ key: String) {
    object.addObserver(observer, forKeyPath: key, options: [.initial, .new], context: nil)
  }

  private static func end(_ observer: NSObject, of object: NSObject, _ key: String) {
    object.removeObserver(observer, forKeyPath: key)
    object.removeObserver(observer, forKeyPath: key, context: nil)
  }

  private static func copy(_ key: String, from object: NSObject, to other: NSObject, _ name: String)
  {
    other.setValue(object.value(forKey: key), forKey: name)
  }
}

/// An object of the app, whose properties are found by their names.
private final class Settings: NSObject {
  var goal = 10
  var title: String?
  private(set) var unknown: [String] = []

  override func setValue(_ value: Any?, forUndefinedKey key: String) { unknown.append(key) }
}

/// What it hears.
private final class Listener: NSObject {
  private(set) var heard: [String] = []

  override func observeValue(
    forKeyPath keyPath: String?, of object: Any?, change: [NSKeyValueChangeKey: Any]?,
    context: UnsafeMutableRawPointer?
  ) {
    heard.append("\(keyPath ?? "") \(change?[.newKey] ?? "none")")
  }
}
