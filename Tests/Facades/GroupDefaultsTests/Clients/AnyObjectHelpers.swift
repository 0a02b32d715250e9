// Helpers for any object, in a file that imports both modules.
import Foundation
import SharedUserDefaults

public enum AnyObjectHelpers {
  public static func begin(_ observer: NSObject, of object: NSObject, _ key: String) {
    object.addObserver(observer, forKeyPath: key, options: [.initial, .new], context: nil)
  }

  public static func end(_ observer: NSObject, of object: NSObject, _ key: String) {
    object.removeObserver(observer, forKeyPath: key)
    object.removeObserver(observer, forKeyPath: key, context: nil)
  }

  public static func copy(_ key: String, from object: NSObject, to other: NSObject, _ name: String)
  {
    other.setValue(object.value(forKey: key), forKey: name)
  }
}

/// An object of the app, whose properties are found by their names.
public final class Settings: NSObject {
  public var goal = 10
  public var title: String?
  public private(set) var unknown: [String] = []

  public override func setValue(_ value: Any?, forUndefinedKey key: String) { unknown.append(key) }
}

/// What it hears.
public final class Listener: NSObject {
  public private(set) var heard: [String] = []

  public override func observeValue(
    forKeyPath keyPath: String?, of object: Any?, change: [NSKeyValueChangeKey: Any]?,
    context: UnsafeMutableRawPointer?
  ) {
    heard.append("\(keyPath ?? "") \(change?[.newKey] ?? "none")")
  }
}
