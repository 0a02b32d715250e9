public import WormholePropertyLists
import WormholeSystem

/// One property list, always whole: read without any lock, replaced or updated in one step,
/// observed.
///
/// Every method has a form that blocks its thread, and one for tasks that never blocks the
/// cooperative pool. A write takes the value's lease. If the lease is busy, the write waits until
/// its deadline. It takes the lease over from a process that is stopped (after 50 ms) or holds it
/// longer than its term. Its own lease may be taken over, too; it then begins again.
///
/// On etcd no lease is needed: a change is published if the value has not changed since it was
/// read, and begins again otherwise. There a read waits for a round trip to the cluster.
///
/// ```swift
/// let seats = container.value("seats")
/// try await seats.replace(with: 100)
/// try await seats.update { $0 = .integer(($0?.int64Value ?? 100) - 1) }
/// print(try await seats.read() ?? "never written")
/// ```
public struct Value: Sendable {
  /// The container of the value.
  public var container: SharedContainer { store.container }
  /// The identifier of the value.
  public var identifier: String { store.identifier }

  /// The state that all copies share, so that a copy costs little.
  package let store: any ValueStore
  /// The directory and the name of the value's file. On etcd, where it has no file, those that it
  /// would have in this machine's directory.
  package var directory: NamedDirectory { store.file.directory }
  package var fileName: String { store.file.name }
  /// The publishing peer; by default the only peer that this process is.
  package var peer: String?

  /// The default wait of a write for the lease: 10 seconds.
  public static let standardWait: Duration = .seconds(10)

  /// The term of a change that names no other: 2 seconds. A holder that takes longer keeps the
  /// lease as long as no other process wants it.
  public static let standardTerm = LeaseDeclaration.standardTerm

  /// The largest size of a value on disk: 64 MiB.
  public static let maximumBytes = PropertyListLimits.standard.maximumBytes

  /// The largest size of a value's file, which includes the record of its publication.
  package static let maximumFileBytes = PublishedContent.largest(maximumBytes)

  package init(container: SharedContainer, identifier: String, kind: NameKind) {
    self.init(container.engine.value(identifier, kind, in: container))
  }

  init(_ store: any ValueStore) { self.store = store }

  /// The path of the value's file, whether or not it exists; on etcd a description of its key.
  public var path: String { store.path }

  // MARK: Reading

  /// Returns the current value; nil only if it was never written, was removed, or has expired.
  ///
  /// - Throws: `AppGroupError.Code.damaged`, `.notAValue` for anything but a regular file of this
  ///   user, `.tooLarge`, or an error of the file system.
  /// - Complexity: Open, fstat, read, close; no lock.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(limits: PropertyListLimits = .standard) throws -> PropertyListValue? {
    try snapshot(limits: limits).propertyList(limits: limits)
  }

  /// Returns the current value as bytes, with its version.
  ///
  /// - Throws: As `read`, except for damage, which the snapshot reports when its content is used.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func snapshot(limits: PropertyListLimits = .standard) throws -> ValueSnapshot {
    try reporting("read the value", path: path) { try store.snapshot(limits: limits) }
  }

  /// Returns the current publication; nil if the value was never written, was removed, or has expired.
  ///
  /// A caller that kept the content of a snapshot with the same version need not read the value
  /// again. There is one exception: if another program makes two changes in place, to the same
  /// size, within one tick of the kernel's clock, the second may keep the version of the first.
  ///
  /// - Throws: `AppGroupError` for an error of the file system.
  /// - Complexity: One system call; one more if there is no value. A value that expires is read.
  public func version() throws -> Version? {
    try reporting("look at the value", path: path) { try store.version() }
  }
}

extension SharedContainer {
  /// Returns the value with an identifier. No file is touched before it is read or written.
  ///
  /// - Parameter identifier: Any string, byte for byte; "/" and ".." are ordinary characters.
  public func value(_ identifier: String) -> Value {
    Value(container: self, identifier: identifier, kind: .value)
  }

  /// Returns the identifiers of all values that were ever written, unordered.
  ///
  /// - Complexity: One directory listing, and one file read for each identifier that is too long
  ///   for a file name.
  public func valueIdentifiers() throws -> [String] {
    try identifiers(of: .value)
  }
}

extension OwnNames {
  /// Returns the package's value with a name; no file is touched before it is read or written.
  package func value(_ name: String) -> Value {
    Value(container: container, identifier: name, kind: .ownValue)
  }
}
