public import FoundationEssentials
public import WormholePropertyLists

/// The state of a value at one moment: whole, and read without any lock.
///
/// ```swift
/// let snapshot = try await container.value("seats", as: [Int].self).snapshot()
/// if let seats = try snapshot.content {
///   print(seats, "by", snapshot.publisher?.program ?? "a foreign program")
/// }
/// ```
public struct ValueSnapshot<Content: Codable & Sendable>: Sendable {
  private let found: Result<[UInt8]?, WormholeError>
  private let store: any ValueStore
  /// The publication; nil if the value was never written, was removed, or has expired.
  public let version: Version?
  private let record: PublicationRecord?
  /// Whether there is a file whose content has expired.
  package let isExpired: Bool
  /// The time of publication, if the content stands in for later content that is lost.
  package let standsInFrom: Date?

  /// Whether an observer had it before the value became unreadable for a while: becoming readable
  /// again is not a publication.
  package internal(set) var isKnown = false

  /// - Parameters:
  ///   - bytes: The content, without the record of its publication.
  ///   - record: The record of the publication.
  ///   - mayHaveExpired: Whether the record's expiry counts; on etcd its own lease decides.
  ///   - standsInFrom: When it was published, if it stands in for later content.
  package init(
    bytes: [UInt8]?, version: Version?, of store: any ValueStore, record: PublicationRecord? = nil,
    mayHaveExpired: Bool = true, standsInFrom: Date? = nil
  ) {
    self.standsInFrom = standsInFrom
    isExpired = mayHaveExpired && record?.hasExpired ?? false
    found = .success(isExpired ? nil : bytes)
    self.version = isExpired ? nil : version
    self.store = store
    self.record = isExpired ? nil : record
  }

  package init(failure: WormholeError, version: Version?, of store: any ValueStore) {
    found = .failure(failure)
    self.version = version
    self.store = store
    record = nil
    isExpired = false
    standsInFrom = nil
  }

  /// The same state for another type of content.
  init(_ other: ValueSnapshot<some Any>) {
    found = other.found
    store = other.store
    version = other.version
    record = other.record
    isExpired = other.isExpired
    standsInFrom = other.standsInFrom
    isKnown = other.isKnown
  }

  /// The process that published the content, and when; nil if there is no value, or if a program
  /// that does not use this package wrote the file.
  ///
  /// It is read from the same file, in the same call, as the content. See `Publisher` for what it
  /// proves.
  public var publisher: Publisher? { record?.publisher }

  /// The moment from which the value reads as never written, by the time of day; nil if it does not
  /// expire.
  public var expiration: Date? { record?.expiry.map { Date(nanosecondsSince1970: $0) } }

  /// The same in nanoseconds since 1970.
  var expiry: Int64? { record?.expiry }

  package var publication: Publication { Publication(stamp: version?.stamp, record: record) }

  /// Whether it could not be read for a reason that may pass without an event.
  var mayPass: Bool { if case .failure(let error) = found { error.mayPass } else { false } }

  /// Whether there is no value, as far as a look can show that.
  var isRemoved: Bool { if case .success(nil) = found { true } else { false } }

  /// Whether it could not be looked at: nothing shows that there is a value.
  var isUnknown: Bool {
    guard case .failure(let error) = found else { return false }
    return [.containerMissing, .tooManyOpenFiles].contains(error.code)
  }

  /// Whether the value was never written, was removed, or has expired.
  public var isAbsent: Bool { version == nil }

  /// Returns the property list as it was published, or nil if there is no value. The file may have
  /// more bytes: the record of the publication.
  ///
  /// - Throws: `WormholeError`, as reading the file did.
  public func bytes() throws -> [UInt8]? { try found.get() }

  /// Returns the bytes as they are stored, with the record of their publication; nil if there is no
  /// value.
  package func storedBytes() throws -> [UInt8]? {
    try found.get().map { PublishedContent($0, record).bytes }
  }

  /// The content; nil only if there is no value.
  ///
  /// Throws `WormholeError.Code.damaged` for bytes that are not a property list, a hostile one, or
  /// one of another shape.
  public var content: Content? { get throws { try decode() } }

  /// Returns the content as a property list, whatever its type is; nil only if there is no value.
  ///
  /// - Throws: `WormholeError.Code.damaged` for bytes that are not a property list, or a hostile one.
  public func propertyList(limits: PropertyListLimits = .standard) throws -> PropertyListValue? {
    try decode(limits: limits)
  }

  /// Returns the content as another type.
  func decode<Other: Decodable>(
    _ type: Other.Type = Other.self, limits: PropertyListLimits = .standard
  ) throws -> Other? {
    guard let bytes = try found.get() else { return nil }
    do {
      return try PropertyListCoding.decode(type, from: bytes, limits: limits)
    } catch let error as DecodingError {
      throw WormholeError.ofAnotherShape(store.path, type, error)
    } catch {
      throw WormholeError.damaged(store.path, error)
    }
  }
}

/// The snapshot of a value for code that looks at no content, or has it as a property list.
package typealias PlainSnapshot = ValueSnapshot<PropertyListValue>

extension WormholeError {
  package static func damaged(_ path: String, _ error: any Error) -> WormholeError {
    WormholeError(
      .damaged, "read the value", path: path, reason: "\(error)",
      remedy: "replace it, remove it, or \(puttingAside(path))")
  }

  static func ofAnotherShape(
    _ path: String, _ type: Any.Type, _ error: DecodingError
  ) -> WormholeError {
    WormholeError(
      .damaged, "read the value as \(type)", path: path,
      reason: "it is a property list of another shape: \(error)",
      remedy: "its writer uses this identifier for another type")
  }

  /// Describes how an unreadable value is kept for inspection.
  ///
  /// - Parameter path: The value's file, or a description of its key.
  package static func puttingAside(_ path: String) -> String {
    Engines.isMeant(by: path)
      ? "look at its key with etcdctl get, and delete it" : "put it aside with quarantine()"
  }
}
