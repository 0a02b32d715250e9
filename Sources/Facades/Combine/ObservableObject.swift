/// An object that tells of each change before it happens. Each `@Published` property, also of a superclass, sends
/// `objectWillChange`, which is there without a declaration. A class that declares one sends it itself.
/// ```swift
/// final class Player: ObservableObject { @Published var volume = 7 }
/// ```
public protocol ObservableObject: AnyObject {
  /// The type of the publisher.
  associatedtype ObjectWillChangePublisher: Publisher = ObservableObjectPublisher
  where ObjectWillChangePublisher.Failure == Never
  /// Sends before the object changes.
  var objectWillChange: ObjectWillChangePublisher { get }
}

/// The publisher of an object that will change.
/// ```swift
/// final class Player: ObservableObject { let objectWillChange = ObservableObjectPublisher() }
/// ```
public typealias ObservableObjectPublisher = PassthroughSubject<Void, Never>

extension ObservableObject where ObjectWillChangePublisher == ObservableObjectPublisher {
  /// Sends before a `@Published` property changes. The first use looks through the object's properties.
  public var objectWillChange: ObservableObjectPublisher {
    let key = ObjectIdentifier(self)
    // Another object may have had the address.
    if let known = entries.withLock({ $0[key] }), known.object === self { return known.publisher }
    let properties = sequence(first: Mirror(reflecting: self), next: \.superclassMirror)
      .flatMap { $0.children.compactMap { $0.value as? any ReportingProperty } }
    let (entry, _, _) = entries.withLock { entries -> (Entry, [ObjectIdentifier: Entry], Entry?) in
      if let known = entries[key], known.object === self { return (known, [:], nil) }
      // Each time that the table would grow, the publishers of objects that are gone leave.
      let old = entries.count == entries.capacity ? entries : [:]
      if !old.isEmpty { entries = old.filter { $0.value.object != nil } }
      let new = Entry(object: self)
      for property in properties { property.objectWillChange.withLock { $0 = new.publisher } }
      return (new, old, entries.updateValue(new, forKey: key))
    }
    return entry.publisher
  }
}

/// The publisher of an object that does not declare one.
private struct Entry {
  weak var object: AnyObject?
  let publisher = ObservableObjectPublisher()
}
private let entries = Locked<[ObjectIdentifier: Entry]>([:])
