/// Something that can be ended.
/// ```swift
/// func stop(_ search: any Cancellable) { search.cancel() }
/// ```
public protocol Cancellable {
  /// Ends it; has no effect afterwards.
  func cancel()
}

/// A subscription that ends when it is cancelled or released, without waiting for a running call.
/// ```swift
/// var subscriptions: Set<AnyCancellable> = [AnyCancellable { print("it ends") }]
/// ```
public final class AnyCancellable: Cancellable, Hashable {
  private let action: Locked<(() -> Void)?>

  /// Creates it with what ends it.
  public init(_ cancel: @escaping () -> Void) { action = Locked(cancel) }
  deinit { cancel() }

  /// Ends it; has no effect afterwards.
  public func cancel() { action.exchange(\.self, nil)?() }
  /// Keeps it in a set, whose release ends it.
  public func store(in set: inout Set<AnyCancellable>) { set.insert(self) }
  /// Keeps it in a collection, whose release ends it.
  public func store(in collection: inout some RangeReplaceableCollection<AnyCancellable>) {
    collection.append(self)
  }

  public static func == (left: AnyCancellable, right: AnyCancellable) -> Bool { left === right }
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
