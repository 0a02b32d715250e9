import Dispatch
// On Apple's systems Foundation declares the name, so code that uses it imports that.
@_exported public import Foundation
@_exported public import GroupDefaults
import Synchronization
import Wormhole
import WormholePropertyLists

/// `UserDefaults` as on Apple's systems: `UserDefaults(suiteName:)` is shared by all processes of
/// the group. Its values are those of `GroupDefaults`, which loses no other process's write.
///
/// A client imports it as `import SharedUserDefaults`, with or without Foundation. One line in any
/// of a target's files replaces Foundation's class in all of them:
///
/// ```swift
/// @_exported import SharedUserDefaults
/// ```
///
/// Observers are called after any process's changes: for a change through this object on the thread
/// that makes it, before the call returns; for any other change on a queue of this object. If both
/// happen at once, the queue may report both.
///
/// As with the original, typed getters ask `object(forKey:)`, and typed setters call the one for
/// any object, so a subclass may override only these two.
///
/// `@unchecked`, because the compiler does not check a class that can be subclassed: its properties
/// are constant and Sendable, and a subclass's must be, too.
open class UserDefaults: NSObject, @unchecked Sendable {
  /// The domain of all programs in the original; does not exist here.
  public static let globalDomain = GroupDefaults.globalDomain
  /// The domain of the command line.
  public static let argumentDomain = GroupDefaults.argumentDomain
  /// The domain of the values that `register(defaults:)` received.
  public static let registrationDomain = GroupDefaults.registrationDomain

  /// Posted to `NotificationCenter.default` after each change through an object of this process, on
  /// the thread that makes it. As in the original, changes by other processes are not posted;
  /// observers also learn of those.
  public static let didChangeNotification = Foundation.UserDefaults.didChangeNotification
  /// Posted by the original on systems with a limit; never posted here.
  public static let sizeLimitExceededNotification = NSNotification.Name(
    "NSUserDefaultsSizeLimitExceededNotification")

  private static let shared = UserDefaults()

  /// The program's own defaults.
  open class var standard: UserDefaults { shared }

  /// Does nothing, because `standard` has no state to reset.
  open class func resetStandardUserDefaults() {}

  /// The same defaults with the calls that throw, the calls for tasks, and typed keys.
  public let groupDefaults: GroupDefaults

  private struct Registration {
    let observer: ObjectIdentifier
    let target: Observer
    let keyPath: String
    let context: UInt
    let observation: NSKeyValueObservation
  }

  private let observers = KeyValueObservers<UserDefaults>(of: [])
  private let registrations = Mutex<[Registration]>([])
  private let otherChanges = Mutex<ObservationToken?>(nil)
  private let ownChanges = Mutex(OwnChanges())

  /// Creates a group's defaults; see `GroupDefaults.init(suiteName:)`.
  ///
  /// - Parameter suitename: An App Group identifier; nil for the program's own defaults.
  /// - Returns: nil for names that stand for another domain, and for "".
  public init?(suiteName suitename: String?) {
    guard let defaults = suitename.map({ GroupDefaults(suiteName: $0) }) ?? GroupDefaults()
    else { return nil }
    groupDefaults = defaults
    super.init()
    defaults.onOwnChange { [weak self] in self?.handle($0) }
  }

  /// Creates the program's own defaults, as in `standard`.
  public convenience override init() {
    // Without a name, there is none that could be refused.
    self.init(suiteName: nil)!
  }

  // MARK: Reading

  /// Returns the value of a key in the first domain of the search list that has one; see
  /// `GroupDefaults.object(forKey:)`.
  open func object(forKey defaultName: String) -> Any? {
    groupDefaults.object(forKey: defaultName)
  }

  /// Returns the same as `object(forKey:)`, for code that uses key-value coding.
  open override func value(forKey key: String) -> Any? { object(forKey: key) }

  private func content(of key: String) -> PropertyListValue? {
    guard let object = object(forKey: key) else { return nil }
    return groupDefaults.reporting(nil) { try Conversions.stored(object, forKey: key) }
  }

  /// Returns the value as a string, a number as its text; nil for any other type.
  open func string(forKey defaultName: String) -> String? {
    content(of: defaultName).flatMap(Conversions.string)
  }

  /// Returns the value if it is an array.
  open func array(forKey defaultName: String) -> [Any]? { object(forKey: defaultName) as? [Any] }

  /// Returns the value if it is a dictionary.
  open func dictionary(forKey defaultName: String) -> [String: Any]? {
    object(forKey: defaultName) as? [String: Any]
  }

  /// Returns the value if it is data.
  open func data(forKey defaultName: String) -> Data? { object(forKey: defaultName) as? Data }

  /// Returns the value if it is an array of strings only; numbers are not converted.
  open func stringArray(forKey defaultName: String) -> [String]? {
    object(forKey: defaultName) as? [String]
  }

  /// Returns the value as an integer; see `GroupDefaults.integer(forKey:)`.
  open func integer(forKey defaultName: String) -> Int {
    content(of: defaultName).map(Conversions.integer) ?? 0
  }

  /// Returns the value as a real; see `GroupDefaults.double(forKey:)`.
  open func float(forKey defaultName: String) -> Float { Float(double(forKey: defaultName)) }

  /// Returns the value as a real; see `GroupDefaults.double(forKey:)`.
  open func double(forKey defaultName: String) -> Double {
    content(of: defaultName).map(Conversions.double) ?? 0
  }

  /// Returns the value as a boolean; see `GroupDefaults.bool(forKey:)`.
  open func bool(forKey defaultName: String) -> Bool {
    content(of: defaultName).map(Conversions.bool) ?? false
  }

  /// Returns the value as a URL; see `GroupDefaults.url(forKey:)`.
  open func url(forKey defaultName: String) -> URL? {
    content(of: defaultName).flatMap(Conversions.url)
  }

  /// Returns all keys in the search list, each with the value that `object(forKey:)` returns.
  open func dictionaryRepresentation() -> [String: Any] { groupDefaults.dictionaryRepresentation() }

  // MARK: Writing

  /// Stores a value, which all processes see when this method returns; nil removes it. See
  /// `GroupDefaults.set(_:forKey:)`.
  open func set(_ value: Any?, forKey defaultName: String) {
    groupDefaults.set(value, forKey: defaultName)
  }

  /// Stores a value as `set(_:forKey:)` does, for code that uses key-value coding.
  open override func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }

  /// Stores an integer.
  open func set(_ value: Int, forKey defaultName: String) {
    set(value as Any?, forKey: defaultName)
  }

  /// Stores a real, as a double with the same value.
  open func set(_ value: Float, forKey defaultName: String) {
    set(value as Any?, forKey: defaultName)
  }

  /// Stores a real.
  open func set(_ value: Double, forKey defaultName: String) {
    set(value as Any?, forKey: defaultName)
  }

  /// Stores a boolean.
  open func set(_ value: Bool, forKey defaultName: String) {
    set(value as Any?, forKey: defaultName)
  }

  /// Stores a URL, a file URL as its path, which may begin with "~"; nil removes it.
  open func set(_ url: URL?, forKey defaultName: String) { set(url as Any?, forKey: defaultName) }

  /// Removes a value from the suite; a search may then find the key's value in another domain.
  open func removeObject(forKey defaultName: String) {
    groupDefaults.removeObject(forKey: defaultName)
  }

  /// Sets fallback values for every search list of this process; they are never stored.
  open func register(defaults registrationDictionary: [String: Any]) {
    groupDefaults.register(defaults: registrationDictionary)
  }

  /// Waits until every change would survive a power loss. Readers do not need this call.
  ///
  /// - Returns: Whether it succeeded.
  @discardableResult
  open func synchronize() -> Bool { groupDefaults.synchronize() }

  /// Returns false, because there are no managed defaults here that could force a value.
  open func objectIsForced(forKey key: String) -> Bool { false }

  /// Returns false, because there are no managed defaults here that could force a value.
  open func objectIsForced(forKey key: String, inDomain domain: String) -> Bool { false }

  // MARK: Domains

  /// Adds a suite to the search list, after this suite and those added before.
  open func addSuite(named suiteName: String) { groupDefaults.addSuite(named: suiteName) }

  /// Removes a suite from the search list.
  open func removeSuite(named suiteName: String) { groupDefaults.removeSuite(named: suiteName) }

  /// Returns the whole content of a suite, or nil if it is empty.
  open func persistentDomain(forName domainName: String) -> [String: Any]? {
    groupDefaults.persistentDomain(forName: domainName)
  }

  /// Replaces the whole content of a suite in one step.
  open func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
    groupDefaults.setPersistentDomain(domain, forName: domainName)
  }

  /// Removes the whole content of a suite in one step.
  open func removePersistentDomain(forName domainName: String) {
    groupDefaults.removePersistentDomain(forName: domainName)
  }

  /// The names of the domains that are never stored.
  open var volatileDomainNames: [String] { groupDefaults.volatileDomainNames }

  /// Returns the content of a domain that is never stored; empty for an unknown one.
  open func volatileDomain(forName domainName: String) -> [String: Any] {
    groupDefaults.volatileDomain(forName: domainName)
  }

  /// Replaces a domain that is never stored; see `GroupDefaults.setVolatileDomain(_:forName:)`.
  open func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
    groupDefaults.setVolatileDomain(domain, forName: domainName)
  }

  /// Removes a domain that is never stored.
  open func removeVolatileDomain(forName domainName: String) {
    groupDefaults.removeVolatileDomain(forName: domainName)
  }

  // MARK: Observing

  /// Calls an object's `observeValue` for each change of a key by any process.
  ///
  /// - Parameters:
  ///   - observer: The object; it is not retained, and no longer called when it is gone.
  ///   - keyPath: The key. Dots and "@" are ordinary characters.
  ///   - options: The content of the reports, and whether the current value is reported first.
  ///   - context: Any pointer, which each call receives.
  open override func addObserver(
    _ observer: NSObject, forKeyPath keyPath: String, options: NSKeyValueObservingOptions = [],
    context: UnsafeMutableRawPointer?
  ) {
    let (target, address) = (Observer(object: observer), UInt(bitPattern: context))
    let property = ObservableProperty<UserDefaults> { $0.content(of: keyPath) }
    let observation = observe(property, options) {
      (defaults, change: NSKeyValueObservedChange<PropertyListValue?>) in
      guard let object = target.object else { return defaults.removeEnded() }
      object.observeValue(
        forKeyPath: keyPath, of: defaults, change: change.dictionary,
        context: UnsafeMutableRawPointer(bitPattern: address))
    }
    let registration = Registration(
      observer: ObjectIdentifier(observer), target: target, keyPath: keyPath, context: address,
      observation: observation)
    registrations.withLock { $0.append(registration) }
  }

  /// Ends the last observation of a key by an object; has no effect without one.
  ///
  /// - Parameters:
  ///   - observer: The object.
  ///   - keyPath: The key.
  open override func removeObserver(_ observer: NSObject, forKeyPath keyPath: String) {
    remove { $0.observer == ObjectIdentifier(observer) && $0.keyPath == keyPath }
  }

  /// Ends the last observation of a key by an object with a pointer; has no effect without one.
  ///
  /// - Parameters:
  ///   - observer: The object.
  ///   - keyPath: The key.
  ///   - context: The pointer with which the observer was added.
  open override func removeObserver(
    _ observer: NSObject, forKeyPath keyPath: String, context: UnsafeMutableRawPointer?
  ) {
    let address = UInt(bitPattern: context)
    remove {
      $0.observer == ObjectIdentifier(observer) && $0.keyPath == keyPath && $0.context == address
    }
  }

  /// Ends the observations by objects that are gone.
  private func removeEnded() {
    let ended = registrations.withLock { registrations in
      defer { registrations.removeAll { $0.target.object == nil } }
      return registrations.filter { $0.target.object == nil }
    }
    for registration in ended { registration.observation.invalidate() }
  }

  private func remove(where isMeant: (Registration) -> Bool) {
    let found = registrations.withLock { registrations in
      registrations.lastIndex(where: isMeant).map { registrations.remove(at: $0) }
    }
    found?.observation.invalidate()
  }

  /// Calls a handler when a property changes, until the observation is invalidated or released.
  ///
  /// The property is a computed one that reads this object, like the original's `@objc dynamic`
  /// property in an extension, without these words. It is read after any process changes the suite.
  ///
  /// - Parameters:
  ///   - keyPath: The property.
  ///   - options: The values that the handler gets, and when.
  ///   - changeHandler: Gets the defaults and the change.
  @preconcurrency
  public func observe<Value: Equatable & Sendable>(
    _ keyPath: any KeyPath<UserDefaults, Value> & Sendable,
    options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping @Sendable (UserDefaults, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    observe(ObservableProperty(keyPath), options, changeHandler)
  }

  private func observe<Value>(
    _ property: ObservableProperty<UserDefaults>, _ options: NSKeyValueObservingOptions,
    _ handler: @escaping @Sendable (UserDefaults, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    listenToOthers()
    let observation = observers.observe(self, property, options: options, handler)
    observers.reportChanges(of: self, isForeign: true)
    return observation
  }

  private func handle(_ change: GroupDefaults.OwnChange) {
    switch change {
    case .begins: ownChanges.withLock { $0.begin() }
    case .isMade:
      observers.reportChanges(of: self)
      NotificationCenter.default.post(name: Self.didChangeNotification, object: self)
    case .ends:
      if ownChanges.withLock({ $0.end() }) { observers.reportChanges(of: self, isForeign: true) }
    }
  }

  /// Leaves an own change to the thread that makes it.
  private func reportOtherChanges() {
    while let number = ownChanges.withLock({ $0.look() }) {
      let isComplete = observers.reportChanges(
        of: self, isForeign: true, while: { self.ownChanges.withLock { $0.lastNumber == number } })
      if isComplete { return }
    }
  }

  /// Begins to report changes not made through this object, unless it already does.
  private func listenToOthers() {
    groupDefaults.reporting(()) {
      try otherChanges.withLock { token in
        guard token == nil else { return }
        let queue = DispatchQueue(label: "SharedUserDefaults")
        // Even if it has found nothing: the thread of an own change may have reported another
        // process's value, which has put back the one before it.
        token = try groupDefaults.observeTogether(on: queue) { [weak self] _ in
          self?.reportOtherChanges()
        }
      }
    }
  }
}

/// `@unchecked`, because the original does not require a Sendable observer either: it calls the
/// observer on the thread of the change.
private struct Observer: @unchecked Sendable {
  weak var object: NSObject?
}

extension NSKeyValueObservedChange<PropertyListValue?> {
  /// The change as `observeValue` receives it.
  fileprivate var dictionary: [NSKeyValueChangeKey: Any] {
    var dictionary: [NSKeyValueChangeKey: Any] = [.kindKey: NSNumber(value: kind.rawValue)]
    if let newValue { dictionary[.newKey] = newValue?.propertyListObject ?? NSNull() }
    if let oldValue { dictionary[.oldKey] = oldValue?.propertyListObject ?? NSNull() }
    if isPrior { dictionary[.notificationIsPriorKey] = NSNumber(value: true) }
    return dictionary
  }
}
