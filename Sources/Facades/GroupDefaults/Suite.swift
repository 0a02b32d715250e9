import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// One suite's defaults: one value of a container, a dictionary with exactly the user's keys.
///
/// The last content is kept decoded. It is valid as long as the file is the same publication, which
/// one system call checks. So every read sees all earlier writes by every process, and hardly any
/// read opens the file.
final class Suite: Sendable {
  typealias Contents = [String: PropertyListValue]

  /// The stored content, and the publication that stored it.
  struct State {
    var contents: Contents = [:]
    /// Nil if there is no suite.
    var publication: Publication?
  }

  let value: PlainValue
  let ownWrites = OwnWrites()
  /// The content of one publication.
  private let known = Mutex<(version: Version, state: Result<State, WormholeError>)?>(nil)
  /// Content that was written to a file and need not be decoded when it is read back.
  private let lastEncoded = Mutex<(bytes: [UInt8], contents: Contents)?>(nil)

  /// - Parameter name: nil for the container's own suite.
  init(_ name: String?, in container: SharedContainer) {
    value = container.own.value(name.map { Self.prefix + $0 } ?? Self.containers)
  }

  /// The name of the container's own suite; the others are `defaults/NAME`.
  static let containers = "defaults"
  static let prefix = containers + "/"

  // MARK: Reading

  /// Returns the stored content; empty if there is no suite yet.
  ///
  /// - Throws: `WormholeError.damaged`, or as `Value.snapshot`.
  /// - Complexity: One system call, unless a process has written since the last read.
  func contents() throws -> Contents { try state().contents }

  /// Returns the stored content with its publication; see `contents`.
  func state() throws -> State {
    guard let version = try value.version() else { return State() }
    if let known = known(as: version) { return try known.get() }
    return try state(of: value.snapshot())
  }

  /// Returns the stored content with its publication, for a task.
  func stateForTask() async throws -> State {
    try state(of: await value.snapshot())
  }

  /// Returns the content of a snapshot of the suite's value.
  private func state(of snapshot: PlainSnapshot) throws -> State {
    guard let version = snapshot.version else {
      // The suite is absent, or could not be read, in which case this throws.
      _ = try snapshot.bytes()
      return State()
    }
    if let known = known(as: version) { return try known.get() }
    let new = decoded(snapshot).map { State(contents: $0, publication: snapshot.publication) }
    // If another thread has stored newer content meanwhile, the next read decodes it again.
    known.withLock { $0 = (version, new) }
    return try new.get()
  }

  private func known(as version: Version) -> Result<State, WormholeError>? {
    known.withLock { $0?.version == version ? $0?.state : nil }
  }

  private func decoded(_ snapshot: PlainSnapshot) -> Result<Contents, WormholeError> {
    do {
      let encoded = lastEncoded.withLock { $0 }
      if let encoded, try snapshot.bytes()?.hasSameBytes(as: encoded.bytes) == true {
        return .success(encoded.contents)
      }
      guard case .dictionary(let contents)? = try snapshot.propertyList() else {
        return .failure(.damaged(value, "it is a property list, but not a dictionary of defaults"))
      }
      return .success(contents)
    } catch let error as WormholeError {
      return .failure(.damaged(value, error.reason))
    } catch {
      return .failure(.damaged(value, "\(error)"))
    }
  }

  // MARK: Writing

  /// Changes the content atomically; publishes nothing if it stays the same.
  ///
  /// - Parameters:
  ///   - key: The only key that the body changes; nil for any. Comparing all of many takes long.
  ///   - body: Runs again, with the latest contents, if the lease was lost.
  /// - Throws: The error of `body`, `WormholeError.damaged`, or an error of the container.
  func edit<Result: Sendable>(
    _ terms: ChangeTerms = .init(), of key: String? = nil,
    _ body: @escaping @Sendable (inout Contents) throws -> Result
  ) throws -> Result {
    let number = ownWrites.begin()
    var isPublished = false
    defer { ownWrites.end(number, isPublished: isPublished) }
    let result = try value.edit(terms) { try self.edited($0, of: key, number: number, body) }
    isPublished = true
    return result
  }

  /// Changes the content atomically, for a task.
  func edit<Result: Sendable>(
    _ terms: ChangeTerms, of key: String? = nil,
    _ body: @escaping @Sendable (inout Contents) throws -> Result
  ) async throws -> Result {
    let number = ownWrites.begin()
    var isPublished = false
    defer { ownWrites.end(number, isPublished: isPublished) }
    let result = try await value.edit(terms) { try self.edited($0, of: key, number: number, body) }
    isPublished = true
    return result
  }

  private func edited<Result>(
    _ snapshot: PlainSnapshot, of key: String?, number: Int,
    _ body: (inout Contents) throws -> Result
  ) throws -> (Edit, Result) {
    let old = try state(of: snapshot).contents
    var new = old
    let result = try body(&new)
    let hasChanged = key.map { new[$0] != old[$0] } ?? (new != old)
    guard hasChanged else {
      ownWrites.forget(number)
      return (.keep, result)
    }
    let bytes = try encoded(new, changing: key, in: snapshot.bytes())
    // Noted before the change becomes visible, so that no observer takes it for another writer's.
    ownWrites.note(number, from: old, to: new)
    return (.replace(bytes), result)
  }

  private func encoded(
    _ contents: Contents, changing key: String?, in old: [UInt8]?
  ) throws -> [UInt8] {
    do throws(PropertyListError) {
      let bytes = try PropertyListValue.dictionary(contents)
        .binaryBytes(changing: key, in: old, limits: .standard)
      lastEncoded.withLock { $0 = (bytes, contents) }
      return bytes
    } catch {
      throw WormholeError(
        .unsupportedValue, "write the defaults", path: value.path,
        reason: "no reader would accept them: \(error.reason)",
        remedy: "defaults are meant to be small; share large content as a file")
    }
  }
}

/// The suites that names refer to: in a given container, or without one, each in its name's group.
extension Suite {
  /// Names with another meaning in the original (NSUserDefaults.h).
  static let reserved: Set<String> = [
    "", GroupDefaults.globalDomain, GroupDefaults.argumentDomain, GroupDefaults.registrationDomain,
  ]

  /// Returns the suite with a name; creates the container of a group if it is missing.
  static func named(_ name: String, in container: SharedContainer?) throws -> Suite {
    try check(name)
    if let container { return Suite(name, in: container) }
    return Suite(nil, in: try SharedContainer(group: name))
  }

  /// Returns the suite with a name for a caller that only reads; creates nothing.
  ///
  /// - Returns: nil if there is no container.
  static func existing(_ name: String, in container: SharedContainer?) throws -> Suite? {
    try check(name)
    if let container { return Suite(name, in: container) }
    return try SharedContainer.existing(group: name).map { Suite(nil, in: $0) }
  }

  private static func check(_ name: String) throws {
    guard reserved.contains(name) else { return }
    throw WormholeError(
      .invalidSuiteName, "open the suite \"\(name)\"",
      reason: name.isEmpty ? "the name is empty" : "that name stands for a domain of its own",
      remedy: "name an App Group such as group.com.example.app")
  }
}
