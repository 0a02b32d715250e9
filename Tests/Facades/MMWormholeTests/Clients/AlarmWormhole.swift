import Foundation
import MMWormhole

enum AppGroup {
  static let identifier = "group.com.example.alarms"
  static let directory: String? = "wormhole"
}

/// A wormhole of an app's own, with the group in one place.
public class AlarmWormhole: MMWormhole {
  public static let shared = AlarmWormhole()

  private(set) var passed = 0
  private(set) var identifiers = Set<String>()

  init() {
    super.init(
      applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory)
  }

  override public func passMessageObject(_ messageObject: NSCoding?, identifier: String?) {
    passed += 1
    super.passMessageObject(messageObject, identifier: identifier)
  }

  override public func listenForMessage(
    withIdentifier identifier: String?, listener: ((Any?) -> Void)? = nil
  ) {
    if let identifier = identifier { identifiers.insert(identifier) }
    super.listenForMessage(withIdentifier: identifier, listener: listener)
  }

  func stopAll() {
    for identifier in identifiers { stopListeningForMessage(withIdentifier: identifier) }
    identifiers.removeAll()
  }
}

/// An app and its extension: each passes, and hears the other.
public class AlarmCenter {
  public static let shared = AlarmCenter()

  public private(set) var heard: [String] = []
  public var wormhole: MMWormhole = AlarmWormhole.shared

  private init() {}

  public func listen(to identifier: String) {
    wormhole.listenForMessage(withIdentifier: identifier) { [weak self] messageObject in
      self?.heard.append(AlarmCenter.describe(messageObject))
    }
  }

  public func stop() {
    (wormhole as? AlarmWormhole)?.stopAll()
  }

  public func pass(_ form: String, _ identifier: String, _ title: String) {
    switch form {
    case "text": wormhole.passMessageObject(title as NSCoding, identifier: identifier)
    case "string": wormhole.passMessageObject(title as NSString, identifier: identifier)
    case "value": wormhole.passMessageObject(["value": true] as NSCoding, identifier: identifier)
    case "alarm":
      wormhole.passMessageObject(Alarm(title: title, minutes: 7), identifier: identifier)
    case "alarms":
      let alarms = [Alarm(title: title, minutes: 1), Alarm(title: title, minutes: 2)]
      wormhole.passMessageObject(NSArray(array: alarms), identifier: identifier)
    case "nothing": wormhole.passMessageObject(nil, identifier: identifier)
    default:
      let message = ["alarms": [["title": title, "index": 3, "amount": 1.5] as [String: Any]]]
      wormhole.passMessageObject(message as NSCoding, identifier: identifier)
    }
  }

  public func read(_ identifier: String) -> String {
    return AlarmCenter.describe(wormhole.message(withIdentifier: identifier))
  }

  public func clear(_ identifier: String?) {
    if let identifier = identifier {
      wormhole.clearMessageContents(forIdentifier: identifier)
    } else {
      wormhole.clearAllMessageContents()
    }
  }

  public static func describe(_ messageObject: Any?) -> String {
    if let alarm = messageObject as? Alarm { return "alarm:\(alarm.title):\(alarm.minutes)" }
    if let alarms = messageObject as? [Alarm] {
      return alarms.map { "\($0.title):\($0.minutes)" }.joined(separator: "+")
    }
    if let text = messageObject as? String { return text }
    if let message = messageObject as? [String: AnyObject] {
      if let value = message["value"] as? Bool { return "value:\(value)" }
      guard let alarms = message["alarms"] as? [[String: AnyObject]],
        let index = alarms.first?["index"] as? Int,
        let seconds = alarms.first?["amount"] as? TimeInterval,
        let title = alarms.first?["title"] as? String
      else { return "unknown:\(message)" }
      return "\(title):\(index):\(seconds)"
    }
    return messageObject == nil ? "nil" : "unknown"
  }
}
