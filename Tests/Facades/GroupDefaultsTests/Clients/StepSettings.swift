import Foundation

/// Settings that an app and its widget share, as such programs are written.
@propertyWrapper
public struct Setting<Value> {
  let key: String
  let defaultValue: Value
  var storage: UserDefaults = .steps

  public init(_ key: String, defaultValue: Value) {
    self.key = key
    self.defaultValue = defaultValue
  }

  public var wrappedValue: Value {
    get { storage.object(forKey: key) as? Value ?? defaultValue }
    set { storage.set(newValue, forKey: key) }
  }
}

extension UserDefaults {
  static let steps = UserDefaults(suiteName: "group.com.example.steps")!
}

public final class StepSettings {
  @Setting("dailyGoal", defaultValue: 10_000) public var dailyGoal: Int
  @Setting("name", defaultValue: "nobody") public var name: String
  @Setting("usesMetric", defaultValue: true) public var usesMetric: Bool

  /// How often a change was posted.
  public private(set) var changes = 0
  private var token: NSObjectProtocol?

  public init() {
    UserDefaults.steps.register(defaults: ["stride": 0.75])
    token = NotificationCenter.default.addObserver(
      forName: UserDefaults.didChangeNotification, object: UserDefaults.steps, queue: nil
    ) { [weak self] _ in self?.changes += 1 }
  }

  deinit {
    if let token = token { NotificationCenter.default.removeObserver(token) }
  }

  public var stride: Double { UserDefaults.steps.double(forKey: "stride") }

  public func reset() {
    for key in ["dailyGoal", "name", "usesMetric"] {
      UserDefaults.steps.removeObject(forKey: key)
    }
    UserDefaults.steps.synchronize()
  }

  /// One line, for the program's log.
  public var summary: String {
    let unit = usesMetric ? "m" : "ft"
    return "\(name) \(dailyGoal) \(stride) \(unit), \(changes) changes"
  }
}
