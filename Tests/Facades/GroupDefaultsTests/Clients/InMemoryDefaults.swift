import Foundation

/// A mock, as tests of such programs have it. `@unchecked`, because its class is, and one thread uses it.
final class InMemoryDefaults: UserDefaults, @unchecked Sendable {
  private var values: [String: Any] = [:]

  convenience init() { self.init(suiteName: "mock")! }

  override init?(suiteName suitename: String?) {
    UserDefaults().removePersistentDomain(forName: suitename!)
    super.init(suiteName: suitename)
  }

  override func object(forKey defaultName: String) -> Any? { values[defaultName] }

  override func set(_ value: Any?, forKey defaultName: String) { values[defaultName] = value }

  override func removeObject(forKey defaultName: String) {
    values.removeValue(forKey: defaultName)
  }
}

/// The defaults of several users, as a program with accounts has them.
public struct Accounts {
  public init() {}

  /// What a mock has, how many different objects there are, and a boolean as a number.
  public var summary: String {
    let mock: UserDefaults = InMemoryDefaults()
    mock.set(5, forKey: "count")
    mock.set(true, forKey: "flag")
    mock.set(URL(fileURLWithPath: "/tmp"), forKey: "place")
    let place = mock.url(forKey: "place")?.path ?? ""
    let values = "\(mock.integer(forKey: "count")) \(mock.bool(forKey: "flag")) \(place)"
    let (one, other) = (UserDefaults(suiteName: "one")!, UserDefaults(suiteName: "one")!)
    let all: Set<UserDefaults> = [one, other, one, .standard, UserDefaults.standard]
    let objects: [NSObject] = Array(all)
    one.set(true, forKey: "flag")
    one.set(["list": [true, 2]], forKey: "nested")
    let number = other.object(forKey: "flag") as? Int ?? -1
    let flag = "\(number) \(other.object(forKey: "flag") as? Bool ?? false)"
    let list = other.dictionary(forKey: "nested")?["list"] as? [Int] ?? []
    return "\(values), \(objects.count) \(one == other) \(one == one), \(flag) \(list)"
  }
}
