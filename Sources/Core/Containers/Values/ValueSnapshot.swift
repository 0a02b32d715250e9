import FoundationEssentials
public import PropertyLists

/// The state of a value at one moment: whole, and read without any lock.
public struct ValueSnapshot: Sendable {
  private let content: Result<[UInt8]?, AppGroupError>
  private let path: String
  /// The publication; nil if the value was never written, or was removed.
  public let version: Version?

  init(bytes: [UInt8]?, version: Version?, path: String) {
    content = .success(bytes)
    self.version = version
    self.path = path
  }

  init(failure: AppGroupError, version: Version?, path: String) {
    content = .failure(failure)
    self.version = version
    self.path = path
  }

  /// Whether the value was never written, or was removed.
  public var isAbsent: Bool { version == nil }

  /// Returns the file's bytes, or nil if there is no value.
  ///
  /// - Throws: `AppGroupError`, as reading the file did.
  public func bytes() throws -> [UInt8]? { try content.get() }

  /// Returns the value; nil only if it was never written or was removed.
  ///
  /// - Throws: `AppGroupError.damaged` for bytes that are not a property list, or a hostile one.
  public func propertyList(limits: PropertyListLimits = .standard) throws -> PropertyListValue? {
    guard let bytes = try content.get() else { return nil }
    do throws(PropertyListError) {
      return try PropertyListValue(bytes: bytes, limits: limits)
    } catch {
      throw AppGroupError.damaged(path, error)
    }
  }

  /// Returns the value as a type of the program.
  ///
  /// - Throws: `AppGroupError.damaged` for bytes that are not a property list, a hostile one, or
  ///   one of another shape.
  public func decode<Content: Decodable>(
    _ type: Content.Type = Content.self, limits: PropertyListLimits = .standard
  ) throws -> Content? {
    guard let bytes = try content.get() else { return nil }
    do {
      return try PropertyListCoding.decode(type, from: Data(bytes), limits: limits)
    } catch let error as DecodingError {
      throw AppGroupError(
        .damaged, "read the value as \(type)", path: path,
        reason: "it is a property list of another shape: \(error)",
        remedy: "its writer uses this identifier for another type")
    } catch {
      throw AppGroupError.damaged(path, error)
    }
  }
}

extension AppGroupError {
  package static func damaged(_ path: String, _ error: any Error) -> AppGroupError {
    AppGroupError(
      .damaged, "read the value", path: path, reason: "\(error)",
      remedy: "replace it, remove it, or put it aside with quarantine()")
  }
}
