public import WormholePropertyLists
import WormholeSystem

/// One value of a type of the program, always whole: read without any lock, replaced or updated in
/// one step, observed.
///
/// Its file holds exactly the content as a property list, so every other program that knows the
/// identifier takes part. `PropertyListValue` is the content that promises no shape.
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
/// let seats = container.value("seats", as: [Int].self)
/// try await seats.replace(with: [7, 8])
/// try await seats.update { $0 = ($0 ?? []) + [12] }
/// print(try await seats.read() ?? [])
/// ```
public struct Value<Content: Codable & Sendable>: Sendable {
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

  package init(container: SharedContainer, identifier: String, kind: NameKind) {
    self.init(
      container.engine(as: (any ValueEngine).self).value(identifier, kind, in: container))
  }

  init(_ store: any ValueStore) { self.store = store }

  /// The same value, whatever its content is.
  package var plain: PlainValue {
    var plain = PlainValue(store)
    plain.peer = peer
    return plain
  }

  /// The path of the value's file, whether or not it exists; on etcd a description of its key.
  public var path: String { store.path }

  // MARK: Reading

  /// Returns the current content; nil only if it was never written, was removed, or has expired.
  ///
  /// - Throws: `WormholeError.Code.damaged` for bytes that are not a `Content`, `.notAValue` for
  ///   anything but a regular file of this user, `.tooLarge`, or an error of the file system.
  /// - Complexity: Open, fstat, read, close; no lock.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(limits: PropertyListLimits = .standard) throws -> Content? {
    try reporting("read the value", path: path) { try store.snapshot(limits: limits) }
      .decode(limits: limits)
  }

  /// Returns the current value as bytes, with its version.
  ///
  /// - Throws: As `read`, except for damage, which the snapshot reports when its content is used.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func snapshot(limits: PropertyListLimits = .standard) throws -> ValueSnapshot<Content> {
    try reporting("read the value", path: path) {
      ValueSnapshot(try store.snapshot(limits: limits))
    }
  }

  /// Returns the current publication; nil if the value was never written, was removed, or has expired.
  ///
  /// A caller that kept the content of a snapshot with the same version need not read the value
  /// again. There is one exception: if another program makes two changes in place, to the same
  /// size, within one tick of the kernel's clock, the second may keep the version of the first.
  ///
  /// - Throws: `WormholeError` for an error of the file system.
  /// - Complexity: One system call; one more if there is no value. A value that expires is read.
  public func version() throws -> Version? {
    try reporting("look at the value", path: path) { try store.version() }
  }
}

/// A value for code that looks at no content, or has it as a property list.
package typealias PlainValue = Value<PropertyListValue>

extension SharedContainer {
  /// The default wait for other processes, in all methods with a deadline: 10 seconds.
  public static let standardWait: Duration = .seconds(10)

  /// The term of a change that names no other: 2 seconds. A holder that takes longer keeps the
  /// lease as long as no other process wants it.
  public static let standardTerm = LeaseDeclaration.standardTerm

  /// The largest size of a value on disk: 64 MiB.
  public static let maximumValueBytes = PropertyListLimits.standard.maximumBytes

  /// The largest size of a value's file, which includes the record of its publication.
  package static let maximumFileBytes = PublishedContent.largest(maximumValueBytes)

  /// Returns the value with an identifier as a property list; see the form with a type.
  public func value(_ identifier: String) -> Value<PropertyListValue> {
    value(identifier, as: PropertyListValue.self)
  }

  /// Returns the value with an identifier. No file is touched before it is read or written.
  ///
  /// - Parameters:
  ///   - identifier: Any string, byte for byte; "/" and ".." are ordinary characters.
  ///   - content: The type of its content.
  public func value<Content>(_ identifier: String, as content: Content.Type) -> Value<Content> {
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
  package func value(_ name: String) -> PlainValue {
    PlainValue(container: container, identifier: name, kind: .ownValue)
  }
}
