/// An object that announces each change before it happens. Each `@Published` property, even of a superclass,
/// sends `objectWillChange`, which needs no declaration. A class that declares one sends it itself.
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
  /// Sends before a `@Published` property changes.
  public var objectWillChange: ObservableObjectPublisher { publisher(of: self) }
}

/// The publisher of an object that declares none. What leaves the table ends outside the lock.
func publisher(of object: AnyObject) -> ObservableObjectPublisher {
  let key = ObjectIdentifier(object)
  return entries.withLock { entries -> (Entry, [ObjectIdentifier: (Entry, AnyObject?)], Entry?) in
    if let known = entries[key], known.object === object { return (known, [:], nil) }
    // Whenever the table would grow, the publishers of objects that are gone are removed.
    let all = entries.count == entries.capacity ? entries.mapValues { ($0, $0.object) } : [:]
    if !all.isEmpty { entries = all.filter { $0.value.1 != nil }.mapValues(\.0) }
    let new = Entry(object: object)
    return (new, all, entries.updateValue(new, forKey: key))
  }.0.publisher
}

private struct Entry {
  weak var object: AnyObject?  // Its address may be that of another one later.
  let publisher = ObservableObjectPublisher()
}
private let entries = Locked<[ObjectIdentifier: Entry]>([:])
