import AppGroup
import PropertyLists
import Synchronization

/// The defaults of one suite: one value of a container, a dictionary with exactly the user's keys.
///
/// What was read last is kept decoded. It is valid as long as the file is the same publication, which
/// one system call tells; so every read sees what any process has written before it, and hardly
/// any reads the file.
final class Suite: Sendable {
  typealias Contents = [String: PropertyListValue]

  /// What was found in one publication.
  private struct Known {
    let version: Version
    let contents: Result<Contents, GroupDefaultsError>
  }

  /// What was put into a file, and need not be decoded when it comes back.
  private struct Encoded {
    let bytes: [UInt8]
    let contents: Contents
  }

  let value: Value
  let ownWrites = OwnWrites()
  private let known = Mutex<Known?>(nil)
  private let lastEncoded = Mutex<Encoded?>(nil)

  /// - Parameter name: nil for the container's own suite.
  init(_ name: String?, in container: SharedContainer) {
    value = container.own.value(name.map { Self.prefix + $0 } ?? Self.containers)
  }

  /// Of the container's own suite; others are `defaults/NAME`.
  private static let containers = "defaults"
  private static let prefix = containers + "/"

  /// The suite whose defaults one of the package's own values holds: nil for the container's own.
  enum Place: Equatable {
    case suite(String?)

    init?(ownValue name: String) {
      if name == containers {
        self = .suite(nil)
      } else if name.utf8.starts(with: prefix.utf8) {
        self = .suite(String(decoding: name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self))
      } else {
        return nil
      }
    }
  }

  // MARK: Reading

  /// What is stored now; nothing where there is no suite yet.
  ///
  /// - Throws: `GroupDefaultsError.damaged`, or `AppGroupError` as `Value.snapshot`.
  /// - Complexity: one system call, unless somebody wrote since the last read.
  func contents() throws -> Contents {
    guard let version = try value.version() else { return [:] }
    if let known = known(as: version) { return try known.contents.get() }
    return try contents(of: value.snapshot())
  }

  /// The same for a task.
  func contentsForTask() async throws -> Contents {
    try contents(of: await value.snapshot())
  }

  /// What a snapshot of the suite's value says.
  func contents(of snapshot: Snapshot) throws -> Contents {
    guard let version = snapshot.version else {
      // Absent; or it could not be read, which this throws.
      _ = try snapshot.bytes()
      return [:]
    }
    if let known = known(as: version) { return try known.contents.get() }
    let contents = decoded(snapshot)
    // What another thread has kept meanwhile may be newer: then the next read decodes it again.
    known.withLock { $0 = Known(version: version, contents: contents) }
    return try contents.get()
  }

  private func known(as version: Version) -> Known? {
    known.withLock { $0?.version == version ? $0 : nil }
  }

  private func decoded(_ snapshot: Snapshot) -> Result<Contents, GroupDefaultsError> {
    do {
      let encoded = lastEncoded.withLock { $0 }
      if let encoded, try snapshot.bytes() == encoded.bytes { return .success(encoded.contents) }
      guard case .dictionary(let contents)? = try snapshot.propertyList() else {
        return .failure(.damaged(value, "it is a property list, but no dictionary of defaults"))
      }
      return .success(contents)
    } catch let error as AppGroupError {
      return .failure(.damaged(value, error.reason))
    } catch {
      return .failure(.damaged(value, "\(error)"))
    }
  }

  // MARK: Writing

  /// How a change is made.
  struct Terms: Sendable {
    let durability: Durability
    let deadline: ContinuousClock.Instant?

    init(_ durability: Durability = .standard, _ deadline: ContinuousClock.Instant? = nil) {
      self.durability = durability
      self.deadline = deadline
    }

    func modification() -> ModificationTerms { ModificationTerms(durability, deadline) }
  }

  /// Changes what is stored, and nobody else's change comes between; nothing is published when it
  /// stays the same.
  ///
  /// - Parameter body: runs again, with the latest contents, when the lease was lost.
  /// - Throws: what `body` throws, `GroupDefaultsError.damaged`, or `AppGroupError`.
  func edit<Result: Sendable>(
    _ terms: Terms = Terms(), _ body: @escaping @Sendable (inout Contents) throws -> Result
  ) throws -> Result {
    let number = ownWrites.begin()
    do {
      let result = try value.edit(terms.modification()) { try self.edited($0, number, body) }
      ownWrites.end(number, isPublished: true)
      return result
    } catch {
      ownWrites.end(number, isPublished: false)
      throw error
    }
  }

  /// The same for a task.
  func edit<Result: Sendable>(
    _ terms: Terms, _ body: @escaping @Sendable (inout Contents) throws -> Result
  ) async throws -> Result {
    let number = ownWrites.begin()
    do {
      let result = try await value.edit(terms.modification()) { try self.edited($0, number, body) }
      ownWrites.end(number, isPublished: true)
      return result
    } catch {
      ownWrites.end(number, isPublished: false)
      throw error
    }
  }

  private func edited<Result>(
    _ snapshot: Snapshot, _ number: Int, _ body: (inout Contents) throws -> Result
  ) throws -> (Edit, Result) {
    let old = try contents(of: snapshot)
    var new = old
    let result = try body(&new)
    guard new != old else {
      ownWrites.forget(number)
      return (.keep, result)
    }
    let bytes = try encoded(new)
    // Noted before anybody can see the change, so that no observer takes it for another's.
    ownWrites.note(number, from: old, to: new)
    return (.replace(bytes), result)
  }

  private func encoded(_ contents: Contents) throws -> [UInt8] {
    do throws(PropertyListError) {
      let bytes = try PropertyListValue.dictionary(contents).binaryBytes()
      // What no reader would accept within its limits is not published.
      try PropertyListGuard.check(bytes)
      lastEncoded.withLock { $0 = Encoded(bytes: bytes, contents: contents) }
      return bytes
    } catch {
      throw GroupDefaultsError(
        .unsupportedValue, "write the defaults", path: value.path,
        reason: "no reader would accept them: \(error.reason)",
        remedy: "defaults are meant to be small; share large content as a file")
    }
  }
}
