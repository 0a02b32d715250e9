import WormholePropertyLists

/// An entry, a message or a snapshot whose content has one type of the program. It has the properties of
/// what it was made from, too.
///
/// ```swift
/// struct Sale: Codable, Sendable { var film: String }
///
/// for try await sale in try await container.log("sales", of: Sale.self).subscribe("printer") {
///   print(sale.number, try sale.content?.film ?? "removed")
/// }
/// ```
@dynamicMemberLookup
public struct TypedElement<Element: Sendable, Content: Codable & Sendable>: Sendable {
  /// What was delivered, as a property list.
  public let element: Element
  private let decode: @Sendable (Element) throws -> Content?

  init(_ element: Element, _ decode: @escaping @Sendable (Element) throws -> Content?) {
    self.element = element
    self.decode = decode
  }

  /// The content; nil only for the snapshot of a value that was never written, was removed or has
  /// expired.
  ///
  /// Throws `AppGroupError` or `PropertyListError` for content of another shape. That ends no
  /// sequence.
  public var content: Content? { get throws { try decode(element) } }

  /// Returns a property of what was delivered.
  ///
  /// - Parameter property: Any property, such as the number of a message.
  public subscript<Property>(dynamicMember property: KeyPath<Element, Property>) -> Property {
    element[keyPath: property]
  }
}

extension TypedElement where Element == QueueEntry {
  /// Ends the entry: it is processed. See `QueueEntry.acknowledge()`.
  public func acknowledge() throws { try element.acknowledge() }

  /// Ends the entry as failed. See `QueueEntry.fail(_:isKept:)`.
  ///
  /// - Parameters:
  ///   - reason: Shown to the sender.
  ///   - isKept: Whether it is kept, with its file.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try element.fail(reason, isKept: isKept)
  }

  /// Ends a failed attempt. See `QueueEntry.retry(after:because:)`.
  ///
  /// - Parameters:
  ///   - pause: The shortest time until its next delivery.
  ///   - reason: Why the attempt failed.
  public func retry(after pause: Duration, because reason: String) throws {
    try element.retry(after: pause, because: reason)
  }

  /// Gives the entry back unhandled. See `QueueEntry.giveBack()`.
  public func giveBack() throws { try element.giveBack() }
}

/// A sequence of entries, messages or snapshots whose content has one type of the program, with the
/// promises of the sequence that it is made from.
///
/// ```swift
/// let seats = container.value("seats", as: [Int].self)
/// for await snapshot in try seats.snapshots(startsWithCurrent: true) {
///   print(try snapshot.content ?? [])
/// }
/// ```
public struct TypedSequence<Base: AsyncSequence & Sendable, Content: Codable & Sendable>:
  AsyncSequence, Sendable
where Base.Element: Sendable {
  /// The element of this sequence.
  public typealias Element = TypedElement<Base.Element, Content>
  /// The error that may end it.
  public typealias Failure = Base.AsyncIterator.Failure

  private let base: Base
  private let decode: @Sendable (Base.Element) throws -> Content?

  init(_ base: Base, _ decode: @escaping @Sendable (Base.Element) throws -> Content?) {
    self.base = base
    self.decode = decode
  }

  /// Makes an iterator; for one task at a time.
  public func makeAsyncIterator() -> Iterator {
    Iterator(base: base.makeAsyncIterator(), decode: decode)
  }

  /// The iterator.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var base: Base.AsyncIterator
    fileprivate let decode: @Sendable (Base.Element) throws -> Content?

    /// Returns the next element; nil at the end.
    ///
    /// - Parameter actor: The actor of the caller.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Base.AsyncIterator.Failure) -> TypedElement<Base.Element, Content>? {
      try await base.next(isolation: actor).map { TypedElement($0, decode) }
    }
  }
}
